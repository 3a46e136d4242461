-- change_account: store or remove the account of a channel, if it is still the one that was read
-- ARGV    channel, version:int, account
--         version: of what was read, 0 if nothing was ever stored; account: as JSON with encrypted settings, "" removes it
-- RETURNS the new version; 0 if the account was changed since, and nothing was written
-- EVENTS  none
-- INVARIANT of two people who change one account at once the second is refused

return function(channel, version, account)
  local field = channel .. ':version'
  if tonumber(redis_call('HGET', Key.accounts(), field) or '0') ~= version then return 0 end
  if account == '' then
    redis_call('HDEL', Key.accounts(), channel)
  else
    redis_call('HSET', Key.accounts(), channel, account)
  end
  return redis_call('HINCRBY', Key.accounts(), field, 1)
end
