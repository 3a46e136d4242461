-- record_attempt: note an attempt to send a message to a webhook, in the shard of its tenant
-- ARGV    id, attempt, succeeded:int, kept:int
--         attempt: its record as JSON; kept: how many attempts are kept
-- RETURNS [now, ms of the last success or 0, ms of the last replay or 0]
-- EVENTS  none

return function(id, attempt, succeeded, kept)
  redis_call('LPUSH', Key.attempts(id), attempt)
  redis_call('LTRIM', Key.attempts(id), 0, kept - 1)
  redis_call('PEXPIRE', Key.attempts(id), 30 * DAY_MS)
  if succeeded == 1 then redis_call('HSET', Key.health(id), 'succeeded', string.format('%.0f', now)) end
  redis_call('PEXPIRE', Key.health(id), 30 * DAY_MS)
  local health = redis_call('HMGET', Key.health(id), 'succeeded', 'replayed')
  return { now, tonumber(health[1] or '0'), tonumber(health[2] or '0') }
end
