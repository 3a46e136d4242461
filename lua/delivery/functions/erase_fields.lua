-- erase_fields: put texts without the data of a person in the place of fields of a history
-- ARGV    suffix, fields:rest
--         fields: 'outcomes' or 'history', field, its text as it was read, its new text, …
-- RETURNS 1, or 0 if one of them has changed: then nothing is written
-- EVENTS  none

local function key_of(suffix, of) return of == 'outcomes' and Key.outcomes(suffix) or Key.history(suffix) end

return function(suffix, fields)
  for n = 1, #fields, 4 do
    local stored = redis_call('HGET', key_of(suffix, fields[n]), fields[n + 1])
    if stored ~= fields[n + 2] and stored ~= fields[n + 3] then return 0 end
  end
  for n = 1, #fields, 4 do redis_call('HSET', key_of(suffix, fields[n]), fields[n + 1], fields[n + 3]) end
  return 1
end
