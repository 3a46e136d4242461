-- remember_step: keep what a step has made outside its run, unless the same step has made something before
-- ARGV    tenant, step, result, kept_ms:int
-- RETURNS the result that was kept first
-- EVENTS  none

return function(tenant, step, result, kept_ms)
  local known = redis_call('GET', Key.stepresult(tenant, step))
  if known then return known end
  redis_call('SET', Key.stepresult(tenant, step), result, 'PX', kept_ms)
  return result
end
