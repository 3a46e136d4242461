-- reserve_call: reserve the next moment at which an account may make a call, at the rate that its refusals have shown
-- ARGV    tube, account
-- USES    rate
-- RETURNS [ms until the account's throttle ends or 0, ms until its call or -1 if no rate is known]
-- EVENTS  none
-- INVARIANT the calls of all processes of an account are evenly spaced; none is reserved while a throttle is in force

-- A rate that has grown to this many calls per second limits nothing any more.
local UNLIMITED = 1000

local throttled = 0
for _, scope in ipairs({ 'account:' .. account, 'method:' .. account }) do
  throttled = math.max(throttled, tonumber(redis.call('ZSCORE', waits_key(tube), scope) or '0') - now)
end
local key = rate_key(tube, account)
local known = read_rate(key)
if not known.rate then return { throttled, -1 } end
if throttled > 0 then
  redis.call('HSET', key, 'next', now + throttled)
  return { throttled, 0 }
end

-- Each call that had to wait raises the rate: by a 500th up to the rate that was refused last, so that few calls are refused, then
-- faster, so that a wrong guess is soon forgotten.
local function grown(rate, limit) return rate + (rate < limit and limit / 500 or math.min(rate / 10, 0.4)) end

local rate, at = known.rate, math.max(now, known.next)
if at > now then rate = grown(rate, known.limit) end
if rate > UNLIMITED then
  redis.call('DEL', key)
  return { 0, -1 }
end
redis.call('HSET', key, 'rate', rate, 'next', string.format('%.3f', at + 1000 / rate), unpack(counted_call(known)))
redis.call('PEXPIRE', key, RATE_KEPT_MS)
return { 0, math.ceil(at - now) }
