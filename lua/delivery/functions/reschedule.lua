-- reschedule: move a delivery that has not been released
-- ARGV    suffix, tenant, due:int, asked:int
--         asked: requested time if quiet hours have moved it to due, or 0
-- RETURNS ["moved", state, due, recipients, requested time if it had passed or was moved]
--         or ["missing"] ["released", state] ["expires"] ["closes"]
-- EVENTS  set and, if due, del of the order key; rescheduled, released, finished; from what fell due before: outcomes, reported, del of
--         bells

return function(suffix, tenant, due, asked)
  local history = Key.history(suffix)
  local fields = redis_call('HMGET', history, 'tenant', 'state', 'expires', 'recipients', 'answers_until')
  if fields[1] ~= tenant then return { 'missing' } end
  if fields[2] ~= 'scheduled' then return { 'released', fields[2] } end
  if fields[3] and due >= tonumber(fields[3]) then return { 'expires' } end
  if fields[5] and due >= tonumber(fields[5]) then return { 'closes' } end
  asked = asked > 0 and asked or due < now and due or nil
  due = math.max(due, now)
  redis_call('HSET', history, 'due', due)
  if asked then redis_call('HSET', history, 'asked', asked) else redis_call('HDEL', history, 'asked') end
  redis_call('HSET', history, 'rescheduled', Version.raise(suffix))
  redis_call('SET', Key.order(suffix), 1, 'PXAT', math.max(due, now + 1))
  redis_call('ZREM', Key.due(), Plan.order_member(suffix))
  if due > now then
    Timers.await_moment(due, Plan.order_member(suffix))
    Outcome.announce(suffix, 'rescheduled')
  elseif Due.overdue(Key.due(), 1)[1] then
    local state
    state, due = DueTurn.release_in_turn(suffix)
    if state == 'scheduled' then Outcome.announce(suffix, 'rescheduled') end
  else
    Parcels.release_delivery(suffix)
  end
  local asked_text = asked and string.format('%.0f', asked) or ''
  return { 'moved', redis_call('HGET', history, 'state'), string.format('%.0f', due), fields[4], asked_text }
end
