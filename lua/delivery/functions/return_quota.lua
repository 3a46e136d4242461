-- return_quota: forget a delivery that take_quota has counted and that was not stored: it was refused, or repeats an earlier one
-- ARGV    tenant, suffix, limit:int, period:int
-- RETURNS 1
-- EVENTS  none

return function(tenant, suffix, limit, period)
  Quota.uncount_send(tenant, suffix, limit, period)
  return 1
end
