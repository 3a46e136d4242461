-- record_attempt: note an attempt to send a message to a webhook
-- ARGV    tenant, id, attempt, succeeded:int, kept:int
--         attempt: its record as JSON; kept: how many attempts are kept
-- RETURNS [now, ms of the last success or 0, ms of the last replay or 0]
-- EVENTS  none

if redis.call('HEXISTS', webhooks_key(), tenant .. '/' .. id) == 0 then return { now, 0, 0 } end
redis.call('LPUSH', attempts_key(id), attempt)
redis.call('LTRIM', attempts_key(id), 0, kept - 1)
redis.call('PEXPIRE', attempts_key(id), 30 * DAY_MS)
if succeeded == 1 then redis.call('HSET', health_key(id), 'succeeded', string.format('%.0f', now)) end
local health = redis.call('HMGET', health_key(id), 'succeeded', 'replayed')
return { now, tonumber(health[1] or '0'), tonumber(health[2] or '0') }
