-- reschedule: move a delivery that has not been released
-- ARGV    suffix, tenant, due:int
-- USES    timers, plan, outcome, parcels, due, turn
-- LATE    release_delivery, release_in_turn
-- RETURNS ["moved", state, due, recipients] or ["missing"] ["released", state] ["expires"]
-- EVENTS  set and, if due, del of the order key; rescheduled, released, finished; from what fell due before: outcomes, reported, del of
--         bells

local history = history_key(suffix)
local fields = redis.call('HMGET', history, 'tenant', 'state', 'expires', 'recipients')
if fields[1] ~= tenant then return { 'missing' } end
if fields[2] ~= 'scheduled' then return { 'released', fields[2] } end
if fields[3] and due >= tonumber(fields[3]) then return { 'expires' } end
due = math.max(due, now)
redis.call('HSET', history, 'due', due)
redis.call('HINCRBY', history, 'version', 1)
redis.call('SET', order_key(suffix), 1, 'PXAT', math.max(due, now + 1))
redis.call('ZREM', due_key(), order_member(suffix))
if due > now then
  await_moment(due, order_member(suffix))
  announce(suffix, 'rescheduled')
elseif overdue(due_key(), 1)[1] then
  local state
  state, due = release_in_turn(suffix)
  if state == 'scheduled' then announce(suffix, 'rescheduled') end
else
  release_delivery(suffix)
end
return { 'moved', redis.call('HGET', history, 'state'), string.format('%.0f', due), fields[4] }
