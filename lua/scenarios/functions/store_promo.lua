-- store_promo: store a promo code, once for each step
-- ARGV    tenant, step, code, record, ends_ms:int, most:int, forgotten_ms:int, step_ms:int
--         code: in capitals; record: JSON object without `id`, which is added; ends_ms: when it expires, 0 if never;
--         most: codes of a tenant; forgotten_ms: how long an expired code is kept
-- RETURNS ["stored", record], or ["known", record] (of an earlier run of the step, or of the code), or ["full"]
-- EVENTS  none
-- INVARIANT a step stores one code, however often it is repeated; a code is never replaced

return function(tenant, step, code, record, ends_ms, most, forgotten_ms, step_ms)
  local codes = Key.promos(tenant)
  local made = redis_call('GET', Key.stepresult(tenant, step))
  local known = redis_call('HGET', codes, made or code)
  if known then return { 'known', known } end

  local over = redis_call('ZRANGEBYSCORE', Key.promoends(tenant), '-inf', now - forgotten_ms, 'LIMIT', 0, 100)
  if #over > 0 then
    redis_call('HDEL', codes, unpack(over))
    redis_call('ZREM', Key.promolist(tenant), unpack(over))
    redis_call('ZREM', Key.promoends(tenant), unpack(over))
    redis_call('ZREM', Key.promoids(tenant), unpack(over))
  end
  if redis_call('HLEN', codes) >= most then return { 'full' } end
  local id = string.format('%.0f', redis_call('INCR', Key.promonumber(tenant)))
  local stored = '{"id":' .. id .. ',' .. string.sub(record, 2)
  redis_call('HSET', codes, code, stored)
  redis_call('ZADD', Key.promoids(tenant), id, code)
  local newest = redis_call('ZREVRANGE', Key.promolist(tenant), 0, 0, 'WITHSCORES')[2]
  redis_call('ZADD', Key.promolist(tenant), math.max(now, (newest or 0) + 0.001), code)
  if ends_ms > 0 then redis_call('ZADD', Key.promoends(tenant), ends_ms, code) end
  redis_call('SET', Key.stepresult(tenant, step), code, 'PX', step_ms)
  return { 'stored', stored }
end
