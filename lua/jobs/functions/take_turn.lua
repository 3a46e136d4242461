-- take_turn: count a call of a limit, or say when the job may try again
-- ARGV    limit, job, most:int, per_ms:int
--         most: so many calls begin in `per_ms` at most
-- RETURNS 0: the call is counted, and may be made; otherwise ms
-- EVENTS  none
-- INVARIANT in no time of `per_ms` are more than `most` calls counted; a job that comes at its turn is not overtaken by later ones

local PATIENCE_MS = 10000
local KEPT_MS = 60000

-- Returns the ms at which the call after `ahead` others is free.
local function free_at(calls, ahead, most, per_ms)
  local rounds = math.floor(ahead / most)
  local oldest = redis_call('LINDEX', calls, most - 1 - ahead % most)
  return (oldest and tonumber(oldest) + per_ms or now) + rounds * per_ms
end

return function(limit, job, most, per_ms)
  local calls, turns = Key.job_calls(limit), Key.job_turns(limit)
  redis_call('ZREMRANGEBYSCORE', turns, '-inf', now - PATIENCE_MS)
  local turn = tonumber(redis_call('ZSCORE', turns, job) or now + 1)
  redis_call('ZREM', turns, job)
  local refused_until = tonumber(redis_call('GET', Key.job_refused(limit)) or '0')
  local due = turn <= now and 0 or redis_call('ZCOUNT', turns, '-inf', now)
  if refused_until <= now and free_at(calls, due, most, per_ms) <= now then
    redis_call('LPUSH', calls, now)
    redis_call('LTRIM', calls, 0, most - 1)
    redis_call('PEXPIRE', calls, per_ms + KEPT_MS)
    return 0
  end
  local at = math.max(free_at(calls, redis_call('ZCARD', turns), most, per_ms), refused_until, now + 1)
  redis_call('ZADD', turns, at, job)
  redis_call('PEXPIREAT', turns, tonumber(redis_call('ZRANGE', turns, -1, -1, 'WITHSCORES')[2]) + KEPT_MS)
  return at - now
end
