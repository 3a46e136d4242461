-- store_request: store a person's request, once for each step
-- ARGV    tenant, step, name, record, kept_ms:int, step_ms:int
--         record: JSON object without `id` and `at`, which are added; step_ms: how long a repeat of the step is recognised
-- RETURNS the id
-- EVENTS  none
-- INVARIANT a step stores one request, however often it is repeated

return function(tenant, step, name, record, kept_ms, step_ms)
  local known = redis_call('GET', Key.stepresult(tenant, step))
  if known then return known end

  local id = string.format('%.0f', redis_call('INCR', Key.requestnumber(tenant)))
  local stored = '{"id":' .. id .. ',"at":' .. string.format('%.0f', now) .. ',' .. string.sub(record, 2)
  redis_call('SET', Key.request(tenant, id), stored, 'PX', kept_ms)
  for _, of in ipairs({ 'all', 'name:' .. name }) do
    local list = Key.requestlist(tenant, of)
    redis_call('ZADD', list, now + (id % 1000) / 1000, id)
    redis_call('PEXPIRE', list, kept_ms)
    local old = redis_call('ZRANGEBYSCORE', list, '-inf', now - kept_ms, 'LIMIT', 0, 100)
    if #old > 0 then redis_call('ZREM', list, unpack(old)) end
  end
  redis_call('SET', Key.stepresult(tenant, step), id, 'PX', step_ms)
  return id
end
