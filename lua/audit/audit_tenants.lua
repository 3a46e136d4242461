-- audit_tenants: reads tenants of a tube, their virtual time and the number of their offers, in one atomic read
-- ARGV    tube, tenants:rest
-- RETURNS for each [tenant, its score in the ring, number of offers]
-- EVENTS  none

local reply = {}
for _, tenant in ipairs(tenants) do
  reply[#reply + 1] = { tenant, redis.call('ZSCORE', tenants_key(tube), tenant), redis.call('ZCARD', ready_key(tube, tenant)) }
end
return reply
