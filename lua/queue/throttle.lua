-- throttle: a provider asked to wait: no task of this scope is attempted before the throttle ends
-- ARGV    tube, scope, wait_ms:int
-- RETURNS the ms at which the throttle ends (a longer one in force stays)
-- EVENTS  none

local until_ms = now + wait_ms
redis.call('ZADD', waits_key(tube), 'GT', until_ms, scope)
until_ms = tonumber(redis.call('ZSCORE', waits_key(tube), scope))
local last = tonumber(redis.call('ZRANGE', waits_key(tube), -1, -1, 'WITHSCORES')[2])
redis.call('PEXPIREAT', waits_key(tube), last + 1000)
return until_ms
