-- change_promo: replace the record of a promo code, perhaps under another code
-- ARGV    tenant, id:int, before, code, record, ends_ms:int
--         before: the record as the caller has read it; code: in capitals, the old one or a new one; record: JSON object without `id`,
--         which is added; ends_ms: when it expires, 0 if never
-- RETURNS ["stored", record], ["changed"] (another caller has changed it, or it is gone), or ["taken"] (the new code is another promo's)
-- EVENTS  none
-- INVARIANT a promo keeps its id and its place in the list; two callers never change it from the same record

return function(tenant, id, before, code, record, ends_ms)
  local codes, ids, list, ends = Key.promos(tenant), Key.promoids(tenant), Key.promolist(tenant), Key.promoends(tenant)
  local old = redis_call('ZRANGEBYSCORE', ids, id, id)[1]
  if not old or redis_call('HGET', codes, old) ~= before then return { 'changed' } end
  if code ~= old then
    if redis_call('HEXISTS', codes, code) == 1 then return { 'taken' } end
    redis_call('ZADD', list, redis_call('ZSCORE', list, old), code)
    redis_call('HDEL', codes, old)
    redis_call('ZREM', list, old)
    redis_call('ZREM', ids, old)
    redis_call('ZREM', ends, old)
  end
  local stored = '{"id":' .. string.format('%.0f', id) .. ',' .. string.sub(record, 2)
  redis_call('HSET', codes, code, stored)
  redis_call('ZADD', ids, id, code)
  if ends_ms > 0 then redis_call('ZADD', ends, ends_ms, code) else redis_call('ZREM', ends, code) end
  return { 'stored', stored }
end
