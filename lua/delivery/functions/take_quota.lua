-- take_quota: count a delivery that its lane places into another shard than its sender's; enqueue counts all others itself
-- ARGV    tenant, suffix, limit:int, period:int
-- RETURNS ["quota", ms until the next delivery is allowed], or ["taken", how many are used, ms until the first of them leaves the window]
-- EVENTS  none
-- INVARIANT at most limit deliveries in any period; a repeat of the call counts nothing

return function(tenant, suffix, limit, period)
  local wait, used = Quota.quota_wait(tenant, suffix, limit, period)
  if Quota.is_counted(tenant, suffix, limit, period) then return { 'taken', used, period } end
  if wait > 0 then return { 'quota', wait } end
  return { 'taken', Quota.count_send(tenant, suffix, limit, period, used) }
end
