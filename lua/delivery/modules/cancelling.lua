-- cancelling: cancels a delivery, whole or for chosen recipients
-- `under_way` lists the parcels, or the recipients, with an attempt under way: they end with the next extend or settle.

local function cancel_parcel(id, under_way)
  local task = Record.read(id)
  if not task then return end
  if task.state == 'taken' then
    redis_call('HSET', Key.progress(id), 'cancel', 1)
    under_way[#under_way + 1] = id
  else
    Parcels.close_parcel(id, task, 'cancelled')
  end
end

-- Returns the ids of the parcels of all channels.
local function parcels_of(suffix)
  local ids = {}
  for _, channel_plan in ipairs(Plan.plan_of(suffix)) do
    for n = 1, #channel_plan.parcels do ids[#ids + 1] = Plan.parcel_id(suffix, channel_plan.channel, n - 1) end
  end
  return ids
end

-- Returns the parcels whose worker was lost, each with its task, and the number of their open entries.
local function lost_parcels(suffix)
  local found, left = {}, 0
  for _, id in ipairs(parcels_of(suffix)) do
    local task = Record.read(id)
    if task and task.state ~= 'taken' and redis_call('HEXISTS', Key.progress(id), 'lost') == 1 then
      found[#found + 1] = { id, task }
      left = left + task.left
    end
  end
  return found, left
end

-- Ends entries of lost workers before the delivery is cancelled, if they are too many for one call. Returns whether it did.
function Cancelling.closed_a_page(suffix)
  local lost, left = lost_parcels(suffix)
  if left <= Parcels.closable or #lost == 1 then return false end
  for n = 1, #lost - 1 do
    if Parcels.may_close() then Parcels.close_unclear(lost[n][1], lost[n][2]) end
  end
  return true
end

-- Returns the parcels under way.
function Cancelling.cancel_whole(suffix, state)
  local under_way = {}
  DeliveryEnd.withdraw(suffix)
  if state == 'scheduled' then
    DeliveryEnd.finish_history(suffix)
    return under_way
  end
  for _, id in ipairs(parcels_of(suffix)) do cancel_parcel(id, under_way) end
  return under_way
end

-- An entry of a taken parcel may be in flight: the courier sees the cancellation at its next extend and reports the outcome. A final
-- outcome is kept.
local function skip_in_flight(suffix, id, channel, item, under_way)
  local field = Outcome.field_of(item[1], channel, item[4])
  if not OPEN[Outcome.status_in(redis_call('HGET', Key.outcomes(suffix), field))] then return end
  local stored = redis_call('HMGET', Key.progress(id), 'skip', 'skipped')
  redis_call('HSET', Key.progress(id), 'skip', (stored[1] and stored[1] .. '\n' or '') .. item[1],
    'skipped', (stored[2] and stored[2] .. '\n' or '') .. cjson.encode(item))
  under_way[#under_way + 1] = item[1]
end

-- Records that the entry is cancelled. Returns the number of entries closed.
local function close_entry(suffix, id, task, channel, item)
  local closed = Outcome.record(suffix, channel, { task and Unclear.cancelled_item(id, task, item) or item })
  if closed ~= 0 and task then
    task.left = redis_call('HINCRBY', Key.progress(id), 'left', 0 - closed)
    if task.left == 0 then Task.finish(id, task, 'cancelled') end
  end
  return closed
end

-- Returns the number of entries closed.
local function cancel_entry(suffix, is_released, entry, under_way)
  local channel, parcel, item = entry[1], entry[2], entry[3]
  local id = Plan.parcel_id(suffix, channel, parcel)
  local task = Record.read(id)
  if is_released and (not task or Parcels.latest_parcel(suffix, channel, parcel, item) ~= parcel) then return 0 end
  if task and task.state == 'taken' then
    skip_in_flight(suffix, id, channel, item, under_way)
    return 0
  end
  return close_entry(suffix, id, task, channel, item)
end

local function reduce(plan, channel, parcel, closed)
  for _, channel_plan in ipairs(plan) do
    if channel_plan.channel == channel then channel_plan.parcels[parcel + 1] = channel_plan.parcels[parcel + 1] - closed end
  end
end

-- `entries`: [[channel, parcel, item], …]. Returns the recipients under way.
function Cancelling.cancel_entries(suffix, state, entries)
  local plan, under_way = Plan.plan_of(suffix), {}
  if state == 'scheduled' then Parcels.open_channels(suffix, plan) end
  redis_call('HSET', Key.history(suffix), 'closed', 1)
  for _, entry in ipairs(entries) do
    if entry[3][6] == 'cancelled' then redis_call('HSET', Key.history(suffix), 'withdrawn', 1) end
    local closed = cancel_entry(suffix, state == 'released', entry, under_way)
    reduce(plan, entry[1], entry[2], closed)
    DeliveryEnd.close_entries(suffix, entry[1], closed)
    if closed ~= 0 then Parcels.wake_later(suffix, entry[1], entry[2]) end
  end
  Plan.save_plan(suffix, plan)
  return under_way
end
