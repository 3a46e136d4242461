-- advance_events: store how far the events were read for the webhooks
-- ARGV    owner, fields:rest
--         fields: name, value, … of the position; "" removes a name
-- RETURNS 1, or 0 if this process may not read any more: nothing was written
-- EVENTS  none

return function(owner, fields)
  if redis_call('GET', Key.reader()) ~= owner then return 0 end
  for n = 1, #fields, 2 do
    if fields[n + 1] == '' then
      redis_call('HDEL', Key.position(), fields[n])
    else
      redis_call('HSET', Key.position(), fields[n], fields[n + 1])
    end
  end
  return 1
end
