-- cancel: cancel a delivery, whole or for chosen recipients, as far as it has not been sent
-- ARGV    suffix, tenant, whole:int, entries:json
--         entries: [[channel, parcel, item], …] of the chosen recipients; item as in outcome.lua, with status cancelled
-- USES    task, plan, outcome, delivery_end, parcels
-- RETURNS ["cancelled", parcels (or recipients) with an attempt under way, which end with the next extend or settle, …] or ["missing"]
--         ["over"] or ["more"]: entries that may have been sent were ended as unknown; call again
-- EVENTS  del of the order key; outcomes, reported, cancelled, finished
-- INVARIANT I11 cancelled before the claim: never claimed; while taken: not retried. A final outcome is kept (D-42); an entry that may
--         have been sent is unknown (D-38)

local history = history_key(suffix)
local fields = facts_of(suffix)
if fields.tenant ~= tenant then return { 'missing' } end
if fields.state ~= 'scheduled' and fields.state ~= 'released' then return { 'over' } end
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

local function lost_parcels()
  local found, entries = {}, 0
  for _, channel_plan in ipairs(plan) do
    for n = 1, #channel_plan.parcels do
      local id = parcel_id(suffix, channel_plan.channel, n - 1)
      local task = read_task(id)
      if task and task.state ~= 'taken' and redis.call('HEXISTS', task_key(id), 'lost') == 1 then
        found[#found + 1] = { id, task }
        entries = entries + task.left
      end
    end
  end
  return found, entries
end

-- Ends entries of lost workers before the delivery is cancelled, if they are too many for one call. Returns whether it did.
local function closed_a_page()
  local lost, entries = lost_parcels()
  if entries <= closable or #lost == 1 then return false end
  for n = 1, #lost - 1 do
    if may_close() then close_unclear(lost[n][1], lost[n][2]) end
  end
  return true
end

local function cancel_whole()
  withdraw(suffix)
  if fields.state == 'scheduled' then return finish_history(suffix) end
  for _, channel_plan in ipairs(plan) do
    for n = 1, #channel_plan.parcels do cancel_parcel(channel_plan.channel, n - 1) end
  end
end

-- An entry of a taken parcel may be in flight: the courier sees the cancellation at its next extend and reports the outcome. A final
-- outcome is kept.
local function skip_in_flight(id, channel, item)
  if not OPEN[status_in(redis.call('HGET', outcomes_key(suffix), field_of(item[1], channel, item[4])))] then return end
  local stored = redis.call('HMGET', task_key(id), 'skip', 'skipped')
  redis.call('HSET', task_key(id), 'skip', (stored[1] and stored[1] .. '\n' or '') .. item[1],
    'skipped', (stored[2] and stored[2] .. '\n' or '') .. cjson.encode(item))
  under_way[#under_way + 1] = item[1]
end

local function cancel_entry(channel, parcel, item)
  local id = parcel_id(suffix, channel, parcel)
  local task = read_task(id)
  if fields.state == 'released' and (not task or latest_parcel(suffix, plan, channel, parcel, item) ~= parcel) then return end
  if task and task.state == 'taken' then return skip_in_flight(id, channel, item) end
  local closed = record(suffix, channel, { task and cancelled_item(id, task, item) or item })
  if closed == 0 then return end
  if task then
    task.left = redis.call('HINCRBY', task_key(id), 'left', 0 - closed)
    if task.left == 0 then end_task(id, task, 'cancelled') end
  end
  for _, channel_plan in ipairs(plan) do
    if channel_plan.channel == channel then channel_plan.parcels[parcel + 1] = channel_plan.parcels[parcel + 1] - closed end
  end
  close_entries(suffix, channel, closed)
end

if whole == 1 then
  if fields.state == 'released' and closed_a_page() then return { 'more' } end
  cancel_whole()
else
  if fields.state == 'scheduled' then open_channels(suffix, plan) end
  redis.call('HSET', history, 'closed', 1, 'withdrawn', 1)
  for _, entry in ipairs(entries) do cancel_entry(entry[1], entry[2], entry[3]) end
  save_plan(suffix, plan)
end
return { 'cancelled', unpack(under_way) }
