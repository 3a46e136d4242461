-- quota: the last deliveries of a sender, of which at most its limit lie in any period (a sliding window)
-- A member is `<unix ns> <limit> <period ms>`: the quota that held for the last delivery can be read later.

local function sends_of(tenant, suffix)
  local sender = Plan.split_suffix(suffix)
  return Key.quota(tenant, sender)
end

function Quota.used_of(sends, period) return redis_call('ZCOUNT', sends, string.format('(%.0f', now - period), '+inf') end

-- Returns the ms until the n-th latest send leaves the window.
function Quota.wait_for(sends, period, n)
  local send = redis_call('ZREVRANGE', sends, n - 1, n - 1, 'WITHSCORES')
  return send[2] and math.max(0, tonumber(send[2]) + period - now) or 0
end

-- Returns the ms to wait, 0 if one more is allowed now; and how many are used.
function Quota.quota_wait(tenant, suffix, limit, period)
  local sends = sends_of(tenant, suffix)
  local used = Quota.used_of(sends, period)
  return used < limit and 0 or Quota.wait_for(sends, period, limit), used
end

local function member_of(suffix, limit, period)
  local _, ns = Plan.split_suffix(suffix)
  return string.format('%s %.0f %.0f', ns, limit, period)
end

-- Returns whether a send was counted, by an earlier call whose reply was lost.
function Quota.is_counted(tenant, suffix, limit, period)
  return redis_call('ZSCORE', sends_of(tenant, suffix), member_of(suffix, limit, period)) and true
end

-- Forgets a send that was counted and not stored.
function Quota.uncount_send(tenant, suffix, limit, period)
  redis_call('ZREM', sends_of(tenant, suffix), member_of(suffix, limit, period))
end

-- Counts a send. Returns how many are used now, and the ms until the first of them leaves the window. If none was used, the key has
-- expired.
function Quota.count_send(tenant, suffix, limit, period, used)
  local sends = sends_of(tenant, suffix)
  if used > 0 then redis_call('ZREMRANGEBYSCORE', sends, '-inf', string.format('%.0f', now - period)) end
  redis_call('ZADD', sends, now, member_of(suffix, limit, period))
  redis_call('PEXPIRE', sends, period)
  return used + 1, used > 0 and Quota.wait_for(sends, period, used + 1) or period
end
