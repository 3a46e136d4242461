-- retry: queue chosen entries of a delivery again, in the same history
-- ARGV    suffix, tenant, version:int, parcels:json
--         version: of the history from which the entries were chosen; parcels: [[channel, encoded parcel, [item, …]], …], items with
--         status queued
-- RETURNS ["retried", entries] or ["missing"] ["changed"] ["scheduled"] ["cancelled"]
-- EVENTS  outcomes; del of bells; from what fell due before: outcomes, reported, released and finished in the stream
-- INVARIANT what fell due before enters its lane first: one page of it per call, and then the caller calls again

local function channel_plan_of(plan, channel)
  for place, channel_plan in ipairs(plan) do
    if channel_plan.channel == channel then return channel_plan, place end
  end
end

-- A finished delivery becomes released again: its retention ends, and it finishes when the new parcels have.
local function reopen(suffix, fields)
  if fields.state == 'released' then return end
  local history = Key.history(suffix)
  redis_call('ZREM', Key.retained(), fields.tenant .. '|' .. suffix)
  redis_call('ZADD', Key.live(fields.tenant), redis_call('HGET', history, 'created'), suffix)
  redis_call('HSET', history, 'state', 'released')
  redis_call('HDEL', history, 'finished', 'expires')
  for _, key in ipairs({ history, Key.outcomes(suffix), Key.reached(suffix) }) do redis_call('PERSIST', key) end
  local code = redis_call('HGET', history, 'answers_code')
  if code then redis_call('PERSIST', Key.asked(code)) end
end

-- In a delivery with the strategy `first` a parcel may be empty: the parcels with one number have the same recipients in all channels.
local function add_retried_parcel(suffix, fields, plan, channel, encoded, items)
  local history, channel_plan, place = Key.history(suffix), channel_plan_of(plan, channel)
  local n = #channel_plan.parcels
  channel_plan.parcels[n + 1] = #items
  redis_call('HSET', history, 'parcel:' .. channel .. ':' .. n, encoded)
  if #items == 0 then return 0 end
  -- The number of the first retried parcel. An earlier parcel may still be taken and report outcomes for the same entries.
  redis_call('HSETNX', history, 'retried:' .. channel, n)
  if redis_call('HINCRBY', history, 'left:' .. channel, #items) == #items then redis_call('HINCRBY', history, 'reported', -1) end
  Outcome.record(suffix, channel, items, true)
  fields.expires = nil
  Parcels.add_parcel(suffix, fields, channel, n, #items, place)
  return #items
end

return function(suffix, tenant, version, parcels)
  local fields = Parcels.facts_of(suffix)
  if fields.tenant ~= tenant then return { 'missing' } end
  if fields.lane and Due.overdue(Key.due(), 1)[1] then
    if Due.tick() then return { 'changed' } end
    fields = Parcels.facts_of(suffix)
  end
  if fields.state == 'scheduled' or fields.state == 'cancelled' then return { fields.state } end
  if tonumber(redis_call('HGET', Key.history(suffix), 'version')) ~= version then return { 'changed' } end

  reopen(suffix, fields)
  local plan, queued = Plan.plan_of(suffix), 0
  for _, parcel in ipairs(parcels) do queued = queued + add_retried_parcel(suffix, fields, plan, unpack(parcel)) end
  Plan.save_plan(suffix, plan)
  return { 'retried', queued }
end
