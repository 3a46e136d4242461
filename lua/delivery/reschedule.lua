-- reschedule: move a delivery that has not been released
-- ARGV    suffix, tenant, due:int, asked:int
--         asked: requested time if quiet hours have moved it to due, or 0
-- USES    timers, plan, outcome, parcels, due, due_turn
-- LATE    release_delivery, release_in_turn
-- RETURNS ["moved", state, due, recipients, requested time if it had passed or was moved] or ["missing"] ["released", state] ["expires"]
-- EVENTS  set and, if due, del of the order key; rescheduled, released, finished; from what fell due before: outcomes, reported, del of
--         bells

local history = history_key(suffix)
local fields = redis.call('HMGET', history, 'tenant', 'state', 'expires', 'recipients')
if fields[1] ~= tenant then return { 'missing' } end
if fields[2] ~= 'scheduled' then return { 'released', fields[2] } end
if fields[3] and due >= tonumber(fields[3]) then return { 'expires' } end
asked = asked > 0 and asked or due < now and due or nil
due = math.max(due, now)
redis.call('HSET', history, 'due', due)
if asked then redis.call('HSET', history, 'asked', asked) else redis.call('HDEL', history, 'asked') end
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
return { 'moved', redis.call('HGET', history, 'state'), string.format('%.0f', due), fields[4], asked and string.format('%.0f', asked) or '' }
