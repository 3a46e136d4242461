-- throttle: a provider asked to wait: no task of this scope is attempted before the throttle ends
-- ARGV    tube, scope, wait_ms:int
-- RETURNS [the ms at which the throttle ends (a longer one in force stays), 1 if one was in force before]
-- EVENTS  del of the signal key, which stops the attempts of all processes of the tube; none for a chat

return function(tube, scope, wait_ms)
  local key, until_ms = Key.throttles(tube), now + wait_ms
  local before = tonumber(redis_call('ZSCORE', key, scope) or '0')
  redis_call('ZADD', key, 'GT', until_ms, scope)
  local last = tonumber(redis_call('ZRANGE', key, -1, -1, 'WITHSCORES')[2])
  redis_call('PEXPIREAT', key, last + 1000)
  if string.sub(scope, 1, 5) ~= 'chat:' then
    -- Set and deleted at once: only the deletion of a key that exists is an event.
    redis_call('SET', Key.signal(tube), 1, 'PX', 1000)
    redis_call('DEL', Key.signal(tube))
  end
  return { math.max(until_ms, before), before > now and 1 or 0 }
end
