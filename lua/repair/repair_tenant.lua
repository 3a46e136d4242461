-- repair_tenant: puts a tenant into the ring iff it has takeable work
-- ARGV    tube, tenant
-- USES    fairness, repair
-- RETURNS one line for each change; none if nothing was wrong
-- EVENTS  del of the bell
-- INVARIANT I4

local turn = redis.call('ZSCORE', tenants_key(tube), tenant)
if redis.call('EXISTS', ready_key(tube, tenant)) == 0 then
  leave_index(tenants_key(tube), 'the ring', tenant)
elseif not turn then
  join_ring(tube, tenant)
  ring(tube)
  note('added to the ring')
end
return changes
