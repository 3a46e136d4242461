-- reserve_call: reserve the next moment at which an account may make a call, at the rate that its refusals have shown
-- ARGV    tube, account
-- RETURNS [ms until the account's throttle ends or 0, ms until its call or -1 if no rate is known]
-- EVENTS  none
-- INVARIANT the calls of all processes of an account are evenly spaced; none is reserved while a throttle is in force

-- A rate that has grown to this many calls per second limits nothing any more.
local UNLIMITED = 1000

-- Each call that had to wait raises the rate: by a 500th up to the rate that was refused last, so that few calls are refused, then
-- faster, so that a wrong guess is soon forgotten.
local function grown(rate, limit) return rate + (rate < limit and limit / 500 or math.min(rate / 10, 0.4)) end

return function(tube, account)
  local throttled = 0
  for _, scope in ipairs({ 'account:' .. account, 'method:' .. account }) do
    throttled = math.max(throttled, tonumber(redis_call('ZSCORE', Key.throttles(tube), scope) or '0') - now)
  end
  local key = Key.rate(tube, account)
  local known = Rate.read_rate(key)
  if not known.rate then return { throttled, -1 } end
  if throttled > 0 then
    redis_call('HSET', key, 'next', now + throttled)
    return { throttled, 0 }
  end

  local rate, at = known.rate, math.max(now, known.next)
  if at > now then rate = grown(rate, known.limit) end
  if rate > UNLIMITED then
    redis_call('DEL', key)
    return { 0, -1 }
  end
  redis_call('HSET', key, 'rate', rate, 'next', string.format('%.3f', at + 1000 / rate), unpack(Rate.counted_call(known)))
  redis_call('PEXPIRE', key, Rate.RATE_KEPT_MS)
  return { 0, math.ceil(at - now) }
end
