-- read_quota: how much of its quota a sender has used
-- ARGV    tenant, sender, limit:int, period:int
--         limit 0: the quota that held for its last delivery
-- RETURNS [used, limit, period, ms until the first one leaves the window]; limit 0: no delivery of the sender counts
-- EVENTS  none

return function(tenant, sender, limit, period)
  local sends = Key.quota(tenant, sender)
  if limit == 0 then
    local last = redis_call('ZREVRANGE', sends, 0, 0)[1]
    if not last then return { 0, 0, 0, 0 } end
    limit, period = string.match(last, '^%d+ (%d+) (%d+)$')
    limit, period = tonumber(limit), tonumber(period)
  end
  local used = Quota.used_of(sends, period)
  return { used, limit, period, used > 0 and Quota.wait_for(sends, period, used) or 0 }
end
