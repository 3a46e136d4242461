-- repair_tenant: a tenant is in the ring while it has something to be taken, and not otherwise
-- ARGV    tube, tenant
-- USES    write_buffer, ready, repair
-- RETURNS what was done, a line each; none if it was in order
-- EVENTS  del of the bell
-- INVARIANT I4

local turn = redis.call('ZSCORE', tenants_key(tube), tenant)
if redis.call('EXISTS', ready_key(tube, tenant)) == 0 then
  stay_out(tenants_key(tube), 'the ring', tenant)
elseif not turn then
  join_ring(tube, tenant)
  ring(tube)
  note('put into the ring')
end
return did
