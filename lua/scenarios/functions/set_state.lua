-- set_state: set or clear the state of a person
-- ARGV    tenant, channel, user, state, lifetime_ms:int, kept_ms:int
--         state: "" clears; kept_ms: how long the person's record is kept after its last change
-- RETURNS the ms at which the state ends, 0 if it was cleared
-- EVENTS  none

return function(tenant, channel, user, state, lifetime_ms, kept_ms)
  local key = Key.person(tenant, channel, user)
  if state == '' then
    redis_call('HDEL', key, 'state', 'until')
    return 0
  end
  local ends = now + lifetime_ms
  redis_call('HSET', key, 'state', state, 'until', string.format('%.0f', ends))
  redis_call('PEXPIRE', key, math.max(kept_ms, lifetime_ms, redis_call('PTTL', key)))
  return ends
end
