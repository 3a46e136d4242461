-- refuse_calls: a service has refused a call because of its rate: no job makes a call of this limit for a time
-- ARGV    limit, wait_ms:int
-- RETURNS the ms until which no call is made; a longer refusal in force stays
-- EVENTS  none

return function(limit, wait_ms)
  local key = Key.job_refused(limit)
  local until_ms = math.max(now + wait_ms, tonumber(redis_call('GET', key) or '0'))
  redis_call('SET', key, string.format('%.0f', until_ms), 'PX', until_ms - now)
  return until_ms
end
