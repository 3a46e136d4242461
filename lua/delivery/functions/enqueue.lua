-- enqueue: store a delivery in one step: its history, its order key and, if it is due, its parcels
-- ARGV    packed: suffix, tenant, call, due, expires, asked, quota, repeat_key, fingerprint, repeat_ms, people, fields, question, follows
--         call: name of this call, by which its repeat after a lost connection is recognised; asked: requested time if quiet hours have
--         moved it, or 0; quota: of the sender, limit and period, or []; people: how many; fields: history field, value, …;
--         question: [] without one, or its code, and the ms at which it closes (0: never); follows: [] unless it is a follow-up; the
--         suffix of the delivery that it follows, in the same shard, and `unreached` or `unanswered`
-- RETURNS ["accepted" | "repeated", suffix, state, due, requested time if it had passed or was moved, recipients] or one of
--         ["used"] ["foreign"] ["payload"] ["quota", ms until the next delivery is allowed]; "accepted" with a quota is followed by
--         how many are used, and the ms until the first of them leaves the window
-- EVENTS  set and, if due, del of the order key; released, finished; from what fell due before: outcomes, reported, del of bells
-- INVARIANT I13; a refusal writes nothing; a repeat returns what the first call returned; at most limit deliveries in any period

local function reply(kind, result) return { kind, result[1], result[2], result[3], result[4], result[5] } end

-- Returns the reply of the first call with this repeat key; nil without one.
local function reply_of_first_call(tenant, repeat_key, fingerprint)
  local first = repeat_key ~= '' and redis_call('GET', Key.idempotency(tenant, repeat_key))
  if not first then return nil end
  local stored = cjson.decode(first)
  if stored.fingerprint ~= fingerprint or not stored.answer then return { 'payload' } end
  return reply('repeated', stored.answer)
end

-- Returns the reply for an id that is in use; nil if it is free, or reserved by this tenant.
local function reply_for_used_id(suffix, tenant, request)
  local history = Key.history(suffix)
  if redis_call('EXISTS', history, Key.reserved(suffix)) == 0 then return nil end
  local stored = redis_call('HMGET', history, 'request', 'tenant', 'created', 'due', 'asked', 'recipients')
  local owner = stored[2] or redis_call('GET', Key.reserved(suffix))
  if owner and owner ~= tenant then return { 'foreign' } end
  if not stored[2] then return nil end
  if stored[1] ~= request then return { 'used' } end
  local state = tonumber(stored[4]) > tonumber(stored[3]) and 'scheduled' or 'released'
  return reply('repeated', { suffix, state, stored[4], stored[5] or '', stored[6] })
end

-- Returns state, due and requested time of a new delivery: a time that has passed becomes now, and is kept as the requested one.
local function state_when_new(due, asked)
  asked = asked > 0 and string.format('%.0f', asked) or ''
  if due > now then return 'scheduled', due, asked end
  if due > 0 and asked == '' then asked = string.format('%.0f', due) end
  return 'released', now, asked
end

local function store_history(suffix, tenant, request, due, expires, asked, recipients, fields)
  local history = Key.history(suffix)
  redis_call('HSET', history, 'state', 'scheduled', 'tenant', tenant, 'request', request, 'created', now, 'due', due,
    'recipients', recipients, unpack(fields))
  if asked ~= '' then redis_call('HSET', history, 'asked', asked) end
  if expires > 0 then redis_call('HSET', history, 'expires', expires) end
  redis_call('ZADD', Key.listed(tenant), now, suffix)
  redis_call('ZADD', Key.live(tenant), now, suffix)
  redis_call('SET', Key.order(suffix), 1, 'PXAT', math.max(due, now + 1))
end

-- Releases the delivery, or starts the timer of its due time. Returns its state and due time: what was due before is released first.
local function release_when_due(suffix, state, due)
  if state == 'scheduled' then
    Timers.await_moment(due, Plan.order_member(suffix))
  elseif Due.overdue(Key.due(), 1)[1] then
    return DueTurn.release_in_turn(suffix)
  else
    Parcels.release_delivery(suffix)
  end
  return state, due
end

return function(suffix, tenant, call, due, expires, asked, quota, repeat_key, fingerprint, repeat_ms, people, fields, question, follows)
  local known = reply_of_first_call(tenant, repeat_key, fingerprint) or reply_for_used_id(suffix, tenant, call)
  if known then return known end
  local wait, used, limit, period = 0, 0, quota[1] or 0, quota[2]
  if limit > 0 then wait, used = Quota.quota_wait(tenant, suffix, limit, period) end
  if wait > 0 then return { 'quota', wait } end

  -- All checks are done; only writes follow.
  local state
  state, due, asked = state_when_new(due, asked)
  store_history(suffix, tenant, call, due, expires, asked, people, fields)
  if question[1] then Answers.open(suffix, tenant, unpack(question)) end
  if follows[1] then FollowUp.link(follows[1], follows[2], suffix) end
  state, due = release_when_due(suffix, state, due)
  local result = { suffix, state, string.format('%.0f', due), asked, people }
  if repeat_key ~= '' then
    redis_call('SET', Key.idempotency(tenant, repeat_key), cjson.encode({ fingerprint = fingerprint, answer = result }), 'PX', repeat_ms)
  end
  local accepted = reply('accepted', result)
  if limit > 0 then accepted[7], accepted[8] = Quota.count_send(tenant, suffix, limit, period, used) end
  return accepted
end
