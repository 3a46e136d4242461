-- enqueue: keep a delivery: its history, its order and, when it is due now, its parcels, in one step
-- ARGV    suffix, tenant, request, due:int, expires:int, repeat_key, fingerprint, repeat_ms:int, fields:rest
--         request: names this very call, so that its repeat after a lost connection is known; fields: history field, value, …
-- USES    ready, outcome, parcels
-- RETURNS ["accepted" | "repeated", suffix, state, due, asked time if it had passed, recipients] or one of
--         ["used"] ["foreign"] ["payload"]
-- EVENTS  set and, when due, del of the order key; released, finished
-- INVARIANT I13; a refusal writes nothing; repeats answer what the first call was answered

local function answer(kind, facts) return { kind, facts[1], facts[2], facts[3], facts[4], facts[5] } end

if repeat_key ~= '' then
  local first = redis.call('GET', idempotency_key(tenant, repeat_key))
  if first then
    local known = cjson.decode(first)
    if known.fingerprint ~= fingerprint then return { 'payload' } end
    return answer('repeated', known.answer)
  end
end

local history = history_key(suffix)
local known = redis.call('HMGET', history, 'request', 'tenant', 'answer', 'recipients')
if known[2] then
  if known[2] ~= tenant then return { 'foreign' } end
  if known[1] ~= request then return { 'used' } end
  local state, at, asked = string.match(known[3], '^(%a+) (%d+) (%d*)$')
  return answer('repeated', { suffix, state, at, asked, known[4] })
end
local owner = redis.call('GET', reserved_key(suffix))
if owner and owner ~= tenant then return { 'foreign' } end

-- Checks are over; from here on everything is written.
local asked = ''
if due <= now then
  if due > 0 then asked = string.format('%.0f', due) end
  due = now
end
local state = due > now and 'scheduled' or 'released'
redis.call('HSET', history, 'state', 'scheduled', 'tenant', tenant, 'request', request, 'created', now, 'due', due,
  'answer', state .. ' ' .. string.format('%.0f', due) .. ' ' .. asked, unpack(fields))
if expires > 0 then redis.call('HSET', history, 'expires', expires) end
redis.call('ZADD', listed_key(tenant), now, suffix)
redis.call('ZADD', live_key(tenant), now, suffix)
redis.call('SET', order_key(suffix), tenant, 'PXAT', math.max(due, now + 1))
if state == 'scheduled' then
  new_moment(due)
  redis.call('ZADD', due_key(), due, order_member(suffix))
else
  release_delivery(suffix)
end
local facts = { suffix, state, string.format('%.0f', due), asked, redis.call('HGET', history, 'recipients') }
if repeat_key ~= '' then
  redis.call('SET', idempotency_key(tenant, repeat_key), cjson.encode({ fingerprint = fingerprint, answer = facts }), 'PX', repeat_ms)
end
return answer('accepted', facts)
