-- keep_id: keep which id of a provider belongs to a name, for all couriers of an account
-- ARGV    channel, account, name, id, gone
--         gone: the id that no longer holds, "" for none
-- RETURNS the id that belongs to the name: this one, or another that was kept before
-- EVENTS  none
-- INVARIANT of two couriers that have made something under one name, all use that of the first

return function(channel, account, name, id, gone)
  local key = Key.provider_ids(channel, account)
  local kept = redis_call('HGET', key, name)
  if kept and kept ~= gone then return kept end
  redis_call('HSET', key, name, id)
  return id
end
