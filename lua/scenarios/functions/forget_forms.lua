-- forget_forms: delete what a person has answered in all forms
-- ARGV    tenant, channel, address
-- RETURNS how many forms had answers
-- EVENTS  none

local ROW_END = '\31' -- behind the name of a row, before that of a question

return function(tenant, channel, address)
  local forms, person = redis_call('SMEMBERS', Key.forms_of(tenant, channel, address)), channel .. ':' .. address
  for _, form in ipairs(forms) do
    local key, people = Key.form_row(tenant, channel, address, form), Key.form_people(tenant, form)
    for _, field in ipairs(redis_call('HKEYS', key)) do
      local row = string.match(field, '^(.*)' .. ROW_END)
      redis_call('ZREM', people, row and person .. ROW_END .. row or person)
    end
    redis_call('DEL', key)
  end
  redis_call('DEL', Key.forms_of(tenant, channel, address))
  return #forms
end
