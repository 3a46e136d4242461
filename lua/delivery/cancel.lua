-- cancel: end a delivery, whole or for chosen recipients, as far as it has not been sent
-- ARGV    suffix, tenant, whole:int, entries:json
--         entries: [[parcel, item], …] for chosen recipients; item as in outcome.lua, with status cancelled
-- USES    task, plan, outcome, delivery_end, parcels
-- RETURNS ["cancelled", parcels (or recipients) whose attempt is under way: they end at their next word, …] or ["missing"] ["over"]
-- EVENTS  del of the order key; outcomes, reported, cancelled, finished
-- INVARIANT I11 cancelled before the claim: never claimed; while taken: not retried. Who has an end keeps it (D-42); who may have been
--         sent to is unknown (D-38)

local history = history_key(suffix)
local facts = facts_of(suffix)
if facts.tenant ~= tenant then return { 'missing' } end
if facts.state ~= 'scheduled' and facts.state ~= 'released' then return { 'over' } end
local plan = plan_of(suffix)
local under_way = {}

local function cancel_parcel(channel, n)
  local id = parcel_id(suffix, channel, n)
  local task = read_task(id)
  if not task then return end
  if task.state == 'taken' then
    redis.call('HSET', task_key(id), 'cancel', 1)
    under_way[#under_way + 1] = id
  else
    close_parcel(id, task, 'cancelled')
  end
end

local function cancel_whole()
  redis.call('HSET', history, 'state', 'cancelled', 'withdrawn', 1)
  redis.call('HINCRBY', history, 'version', 1)
  announce(suffix, 'cancelled')
  if facts.state == 'scheduled' then return finish_history(suffix) end
  for _, leg in ipairs(plan) do
    for n = 1, #leg.parcels do cancel_parcel(leg.channel, n - 1) end
  end
end

-- A taken parcel's recipient may be in flight: its courier is told, and says itself what became of it. Who has an end keeps it.
local function skip_in_flight(id, channel, item)
  if not OPEN[status_in(redis.call('HGET', outcomes_key(suffix), field_of(item[1], channel, item[4])))] then return end
  local known = redis.call('HMGET', task_key(id), 'skip', 'skipped')
  redis.call('HSET', task_key(id), 'skip', (known[1] and known[1] .. '\n' or '') .. item[1],
    'skipped', (known[2] and known[2] .. '\n' or '') .. cjson.encode(item))
  under_way[#under_way + 1] = item[1]
end

local function cancel_entry(channel, parcel, item)
  local id = parcel_id(suffix, channel, parcel)
  local task = read_task(id)
  if facts.state == 'released' and (not task or latest_parcel(suffix, plan, channel, parcel, item) ~= parcel) then return end
  if task and task.state == 'taken' then return skip_in_flight(id, channel, item) end
  local closed = record(suffix, channel, { task and cancelled_item(id, channel, suffix, item) or item })
  if closed == 0 then return end
  if task then
    task.left = redis.call('HINCRBY', task_key(id), 'left', 0 - closed)
    if task.left == 0 then end_task(id, task, 'cancelled') end
  end
  for _, leg in ipairs(plan) do
    if leg.channel == channel then leg.parcels[parcel + 1] = leg.parcels[parcel + 1] - closed end
  end
  close_entries(suffix, channel, closed)
end

if whole == 1 then
  cancel_whole()
else
  if facts.state == 'scheduled' then open_channels(suffix, plan) end
  redis.call('HSET', history, 'closed', 1, 'withdrawn', 1)
  for _, entry in ipairs(entries) do cancel_entry(entry[1], entry[2], entry[3]) end
  save_plan(suffix, plan)
end
return { 'cancelled', unpack(under_way) }
