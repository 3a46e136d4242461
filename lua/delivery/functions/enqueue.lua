-- enqueue: store a delivery in one step: its history, its order key and, if it is due, its parcels
-- ARGV    packed: suffix, tenant, request, due, expires, asked, limit, period, repeat_key, fingerprint, repeat_ms, recipients, fields
--         request: name of this call, by which its repeat after a lost connection is recognised; asked: requested time if quiet hours have
--         moved it, or 0; limit, period: quota of the sender, limit 0 for none; fields: history field, value, …
-- RETURNS ["accepted" | "repeated", suffix, state, due, requested time if it had passed or was moved, recipients] or one of
--         ["used"] ["foreign"] ["payload"] ["quota", ms until the next delivery is allowed]; "accepted" with a quota is followed by
--         how many are used, and the ms until the first of them leaves the window
-- EVENTS  set and, if due, del of the order key; released, finished; from what fell due before: outcomes, reported, del of bells
-- INVARIANT I13; a refusal writes nothing; a repeat returns what the first call returned; at most limit deliveries in any period

local function reply(kind, result) return { kind, result[1], result[2], result[3], result[4], result[5] } end

return function(suffix, tenant, request, due, expires, asked, limit, period, repeat_key, fingerprint, repeat_ms, recipients, fields)
  if repeat_key ~= '' then
    local first = redis_call('GET', Key.idempotency(tenant, repeat_key))
    if first then
      local stored = cjson.decode(first)
      if stored.fingerprint ~= fingerprint or not stored.answer then return { 'payload' } end
      return reply('repeated', stored.answer)
    end
  end

  local history = Key.history(suffix)
  if redis_call('EXISTS', history, Key.reserved(suffix)) > 0 then
    local stored = redis_call('HMGET', history, 'request', 'tenant', 'created', 'due', 'asked', 'recipients')
    local owner = stored[2] or redis_call('GET', Key.reserved(suffix))
    if owner and owner ~= tenant then return { 'foreign' } end
    if stored[2] then
      if stored[1] ~= request then return { 'used' } end
      local state = tonumber(stored[4]) > tonumber(stored[3]) and 'scheduled' or 'released'
      return reply('repeated', { suffix, state, stored[4], stored[5] or '', stored[6] })
    end
  end

  local used = 0
  if limit > 0 then
    local wait
    wait, used = Quota.quota_wait(tenant, suffix, limit, period)
    if wait > 0 then return { 'quota', wait } end
  end

  -- All checks are done; only writes follow.
  asked = asked > 0 and string.format('%.0f', asked) or ''
  local state = due > now and 'scheduled' or 'released'
  if state == 'released' then
    if due > 0 and asked == '' then asked = string.format('%.0f', due) end
    due = now
  end
  redis_call('HSET', history, 'state', 'scheduled', 'tenant', tenant, 'request', request, 'created', now, 'due', due,
    'recipients', recipients, unpack(fields))
  if asked ~= '' then redis_call('HSET', history, 'asked', asked) end
  if expires > 0 then redis_call('HSET', history, 'expires', expires) end
  redis_call('ZADD', Key.listed(tenant), now, suffix)
  redis_call('ZADD', Key.live(tenant), now, suffix)
  redis_call('SET', Key.order(suffix), 1, 'PXAT', math.max(due, now + 1))
  if state == 'scheduled' then
    Timers.await_moment(due, Plan.order_member(suffix))
  elseif Due.overdue(Key.due(), 1)[1] then
    state, due = DueTurn.release_in_turn(suffix)
  else
    Parcels.release_delivery(suffix)
  end
  local result = { suffix, state, string.format('%.0f', due), asked, recipients }
  if repeat_key ~= '' then
    redis_call('SET', Key.idempotency(tenant, repeat_key), cjson.encode({ fingerprint = fingerprint, answer = result }), 'PX', repeat_ms)
  end
  local accepted = reply('accepted', result)
  if limit > 0 then accepted[7], accepted[8] = Quota.count_send(tenant, suffix, limit, period, used) end
  return accepted
end
