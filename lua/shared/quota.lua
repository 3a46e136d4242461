-- quota: the last deliveries of a sender, of which at most its limit lie in any period (a sliding window)
-- USES    plan
-- A member is `<unix ns> <limit> <period ms>`: the quota that held for the last delivery can be read later.

local function sends_of(suffix)
  local sender = split_suffix(suffix)
  return quota_key(tenant, sender)
end

local function used_of(sends, period) return redis.call('ZCOUNT', sends, string.format('(%.0f', now - period), '+inf') end

-- Returns the ms until the n-th latest send leaves the window.
local function wait_for(sends, period, n)
  local send = redis.call('ZREVRANGE', sends, n - 1, n - 1, 'WITHSCORES')
  return send[2] and math.max(0, tonumber(send[2]) + period - now) or 0
end

-- Returns the ms to wait; 0 if one more is allowed now.
local function quota_wait(suffix, limit, period)
  local sends = sends_of(suffix)
  if used_of(sends, period) < limit then return 0 end
  return wait_for(sends, period, limit)
end

-- Counts a send. Returns how many are used, and the ms until the first of them leaves the window.
local function count_send(suffix, limit, period)
  local sends, _, ns = sends_of(suffix), split_suffix(suffix)
  redis.call('ZREMRANGEBYSCORE', sends, '-inf', string.format('%.0f', now - period))
  redis.call('ZADD', sends, now, string.format('%s %.0f %.0f', ns, limit, period))
  redis.call('PEXPIRE', sends, period)
  local used = redis.call('ZCARD', sends)
  return used, wait_for(sends, period, used)
end
