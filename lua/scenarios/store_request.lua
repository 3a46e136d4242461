-- store_request: store a person's request, once for each step
-- ARGV    tenant, step, name, record, kept_ms:int, step_ms:int
--         record: JSON object without `id` and `at`, which are added; step_ms: how long a repeat of the step is recognised
-- RETURNS the id
-- EVENTS  none
-- INVARIANT a step stores one request, however often it is repeated

local known = redis.call('GET', stepresult_key(tenant, step))
if known then return known end

local id = string.format('%.0f', redis.call('INCR', requestnumber_key(tenant)))
local stored = '{"id":' .. id .. ',"at":' .. string.format('%.0f', now) .. ',' .. string.sub(record, 2)
redis.call('SET', request_key(tenant, id), stored, 'PX', kept_ms)
for _, of in ipairs({ 'all', 'name:' .. name }) do
  local list = requestlist_key(tenant, of)
  redis.call('ZADD', list, now + (id % 1000) / 1000, id)
  redis.call('PEXPIRE', list, kept_ms)
  local old = redis.call('ZRANGEBYSCORE', list, '-inf', now - kept_ms, 'LIMIT', 0, 100)
  if #old > 0 then redis.call('ZREM', list, unpack(old)) end
end
redis.call('SET', stepresult_key(tenant, step), id, 'PX', step_ms)
return id
