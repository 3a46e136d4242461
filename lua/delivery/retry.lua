-- retry: queue chosen entries of a delivery again, in the same history
-- ARGV    suffix, tenant, version:int, parcels:json
--         version: of the history from which the entries were chosen; parcels: [[channel, encoded parcel, [item, …]], …], items with
--         status queued
-- USES    plan, outcome, parcels, due
-- LATE    tick
-- RETURNS ["retried", entries] or ["missing"] ["changed"] ["scheduled"] ["cancelled"]
-- EVENTS  outcomes; del of bells; from what fell due before: outcomes, reported, released and finished in the stream
-- INVARIANT what fell due before enters its lane first: one page of it per call, and then the caller calls again

local history = history_key(suffix)
local fields = facts_of(suffix)
if fields.tenant ~= tenant then return { 'missing' } end
if fields.lane and overdue(due_key(), 1)[1] then
  if tick() then return { 'changed' } end
  fields = facts_of(suffix)
end
if fields.state == 'scheduled' or fields.state == 'cancelled' then return { fields.state } end
if tonumber(redis.call('HGET', history, 'version')) ~= version then return { 'changed' } end

-- A finished delivery becomes released again: its retention ends, and it finishes when the new parcels have.
local function reopen()
  if fields.state == 'released' then return end
  redis.call('ZREM', retained_key(), tenant .. '|' .. suffix)
  redis.call('ZADD', live_key(tenant), redis.call('HGET', history, 'created'), suffix)
  redis.call('HSET', history, 'state', 'released')
  redis.call('HDEL', history, 'finished', 'expires')
  for _, key in ipairs({ history, outcomes_key(suffix), reached_key(suffix) }) do redis.call('PERSIST', key) end
end

local function channel_plan_of(plan, channel)
  for place, channel_plan in ipairs(plan) do
    if channel_plan.channel == channel then return channel_plan, place end
  end
end

-- In a delivery with the strategy `first` a parcel may be empty: the parcels with one number have the same recipients in all channels.
local function add_retried_parcel(plan, channel, encoded, items)
  local channel_plan, place = channel_plan_of(plan, channel)
  local n = #channel_plan.parcels
  channel_plan.parcels[n + 1] = #items
  redis.call('HSET', history, 'parcel:' .. channel .. ':' .. n, encoded)
  if #items == 0 then return 0 end
  -- The number of the first retried parcel. An earlier parcel may still be taken and report outcomes for the same entries.
  redis.call('HSETNX', history, 'retried:' .. channel, n)
  if redis.call('HINCRBY', history, 'left:' .. channel, #items) == #items then redis.call('HINCRBY', history, 'reported', -1) end
  record(suffix, channel, items, true)
  fields.expires = nil
  add_parcel(suffix, fields, channel, n, #items, place)
  return #items
end

reopen()
local plan, queued = plan_of(suffix), 0
for _, parcel in ipairs(parcels) do queued = queued + add_retried_parcel(plan, parcel[1], parcel[2], parcel[3]) end
save_plan(suffix, plan)
return { 'retried', queued }
