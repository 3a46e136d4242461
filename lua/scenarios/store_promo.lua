-- store_promo: store a promo code, once for each step
-- ARGV    tenant, step, code, record, ends_ms:int, most:int, forgotten_ms:int, step_ms:int
--         code: in capitals; record: as JSON; ends_ms: when it expires, 0 if never; most: codes of a tenant; forgotten_ms: how long an
--         expired code is kept
-- RETURNS ["stored", record], or ["known", record] (of an earlier run of the step, or of the code), or ["full"]
-- EVENTS  none
-- INVARIANT a step stores one code, however often it is repeated; a code is never replaced

local codes = promos_key(tenant)
local made = redis.call('GET', stepresult_key(tenant, step))
local known = redis.call('HGET', codes, made or code)
if known then return { 'known', known } end

local over = redis.call('ZRANGEBYSCORE', promoends_key(tenant), '-inf', now - forgotten_ms, 'LIMIT', 0, 100)
if #over > 0 then
  redis.call('HDEL', codes, unpack(over))
  redis.call('ZREM', promolist_key(tenant), unpack(over))
  redis.call('ZREM', promoends_key(tenant), unpack(over))
end
if redis.call('HLEN', codes) >= most then return { 'full' } end
redis.call('HSET', codes, code, record)
local newest = redis.call('ZREVRANGE', promolist_key(tenant), 0, 0, 'WITHSCORES')[2]
redis.call('ZADD', promolist_key(tenant), math.max(now, (newest or 0) + 0.001), code)
if ends_ms > 0 then redis.call('ZADD', promoends_key(tenant), ends_ms, code) end
redis.call('SET', stepresult_key(tenant, step), code, 'PX', step_ms)
return { 'stored', record }
