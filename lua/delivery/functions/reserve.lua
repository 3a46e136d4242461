-- reserve: reserve a history key for a delivery that does not exist yet
-- ARGV    suffix, tenant, ttl_ms:int
-- RETURNS 1, or 0 if the key is used or reserved by another tenant
-- EVENTS  none

return function(suffix, tenant, ttl_ms)
  if redis_call('EXISTS', Key.history(suffix)) == 1 then return 0 end
  local owner = redis_call('GET', Key.reserved(suffix))
  if owner and owner ~= tenant then return 0 end
  redis_call('SET', Key.reserved(suffix), tenant, 'PX', ttl_ms)
  return 1
end
