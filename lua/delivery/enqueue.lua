-- enqueue: keep a delivery: its history, its order and, when it is due now, its parcels, in one step
-- ARGV    packed: suffix, tenant, request, due, expires, repeat_key, fingerprint, repeat_ms, recipients, fields
--         request: names this very call, so that its repeat after a lost connection is known; fields: history field, value, …
-- USES    timers, plan, parcels, due, turn
-- LATE    release_delivery, release_in_turn
-- RETURNS ["accepted" | "repeated", suffix, state, due, asked time if it had passed, recipients] or one of
--         ["used"] ["foreign"] ["payload"]
-- EVENTS  set and, when due, del of the order key; released, finished; before: outcomes, reported, del of bells
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
if redis.call('EXISTS', history, reserved_key(suffix)) > 0 then
  local known = redis.call('HMGET', history, 'request', 'tenant', 'created', 'due', 'asked', 'recipients')
  local owner = known[2] or redis.call('GET', reserved_key(suffix))
  if owner and owner ~= tenant then return { 'foreign' } end
  if known[2] then
    if known[1] ~= request then return { 'used' } end
    local state = tonumber(known[4]) > tonumber(known[3]) and 'scheduled' or 'released'
    return answer('repeated', { suffix, state, known[4], known[5] or '', known[6] })
  end
end

-- Checks are over; from here on everything is written.
local asked = ''
local state = due > now and 'scheduled' or 'released'
if state == 'released' then
  if due > 0 then asked = string.format('%.0f', due) end
  due = now
end
redis.call('HSET', history, 'state', 'scheduled', 'tenant', tenant, 'request', request, 'created', now, 'due', due,
  'recipients', recipients, unpack(fields))
if asked ~= '' then redis.call('HSET', history, 'asked', asked) end
if expires > 0 then redis.call('HSET', history, 'expires', expires) end
redis.call('ZADD', listed_key(tenant), now, suffix)
redis.call('ZADD', live_key(tenant), now, suffix)
redis.call('SET', order_key(suffix), 1, 'PXAT', math.max(due, now + 1))
if state == 'scheduled' then
  await_moment(due, order_member(suffix))
elseif overdue(due_key(), 1)[1] then
  state, due = release_in_turn(suffix)
else
  release_delivery(suffix)
end
local facts = { suffix, state, string.format('%.0f', due), asked, recipients }
if repeat_key ~= '' then
  redis.call('SET', idempotency_key(tenant, repeat_key), cjson.encode({ fingerprint = fingerprint, answer = facts }), 'PX', repeat_ms)
end
return answer('accepted', facts)
