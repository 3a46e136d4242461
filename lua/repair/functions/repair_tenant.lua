-- repair_tenant: puts a tenant into the ring iff it has takeable work
-- ARGV    tube, tenant
-- RETURNS one line for each change; none if nothing was wrong
-- EVENTS  del of the bell
-- INVARIANT I4

return function(tube, tenant)
  local turn = redis_call('ZSCORE', Key.tenants(tube), tenant)
  if redis_call('EXISTS', Key.ready(tube, tenant)) == 0 then
    Repair.leave_index(Key.tenants(tube), 'the ring', tenant)
  elseif not turn then
    Fairness.join_ring(tube, tenant)
    Fairness.ring(tube)
    Repair.note('added to the ring')
  end
  return Repair.changes
end
