-- learn_rate: an account was refused because it made calls too fast: slow all its processes down
-- ARGV    tube, account, calls:int
--         calls: how many calls of the reporting process the provider accepted in the second before the refusal
-- RETURNS the rate from now on, in thousandths of a call per second
-- EVENTS  none
-- INVARIANT a rate falls only if it was used: a refusal in a quiet moment has another cause

local SLOWER = 0.85

return function(tube, account, calls)
  local key = Key.rate(tube, account)
  local known = Rate.read_rate(key)
  local used = math.max(calls, Rate.calls_of_last_second(known) - 1)
  local rate = known.rate
  if not rate then
    -- Other processes may have made calls, too, so this is less than the limit: it grows fast from the start.
    rate = used * SLOWER
    redis_call('HSET', key, 'rate', rate, 'limit', rate)
  elseif rate >= known.limit or used * 2 >= rate then
    local limit = math.min(rate, used)
    rate = limit * SLOWER
    redis_call('HSET', key, 'rate', rate, 'limit', limit)
  end
  redis_call('PEXPIRE', key, Rate.RATE_KEPT_MS)
  return math.floor(rate * 1000)
end
