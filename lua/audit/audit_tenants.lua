-- audit_tenants: tenants of a tube, their turn and what they have to be taken, seen in one moment
-- ARGV    tube, tenants:rest
-- RETURNS for each [tenant, its place in the ring, how much is offered]
-- EVENTS  none

local reply = {}
for _, tenant in ipairs(tenants) do
  reply[#reply + 1] = { tenant, redis.call('ZSCORE', tenants_key(tube), tenant), redis.call('ZCARD', ready_key(tube, tenant)) }
end
return reply
