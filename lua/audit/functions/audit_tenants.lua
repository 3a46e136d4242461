-- audit_tenants: reads tenants of a tube, their virtual time and the number of their offers, in one atomic read
-- ARGV    tube, tenants:rest
-- RETURNS for each [tenant, its score in the ring, number of offers]
-- EVENTS  none

return function(tube, tenants)
  local reply = {}
  for _, tenant in ipairs(tenants) do
    reply[#reply + 1] = { tenant, redis_call('ZSCORE', Key.tenants(tube), tenant), redis_call('ZCARD', Key.ready(tube, tenant)) }
  end
  return reply
end
