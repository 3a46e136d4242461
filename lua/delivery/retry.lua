-- retry: a new attempt for chosen outcomes of a delivery, in the same history
-- ARGV    suffix, tenant, version:int, legs:json
--         version: the one the choice was made from; legs: [[channel, parcel blob, [item, …]], …], items with status queued
-- USES    plan, outcome, parcels, due
-- LATE    tick
-- RETURNS ["retried", entries] or ["missing"] ["changed"] ["scheduled"] ["cancelled"]
-- EVENTS  outcomes; del of bells; of what fell due before: outcomes, reported, released and finished in the stream
-- INVARIANT what fell due before enters its lane before what is tried again: a page of it, and the caller comes again

local history = history_key(suffix)
local facts = facts_of(suffix)
if facts.tenant ~= tenant then return { 'missing' } end
if facts.lane and overdue(due_key(), 1)[1] then
  if tick() then return { 'changed' } end
  facts = facts_of(suffix)
end
if facts.state == 'scheduled' or facts.state == 'cancelled' then return { facts.state } end
if tonumber(redis.call('HGET', history, 'version')) ~= version then return { 'changed' } end

-- A finished delivery is at work again: it leaves the retained and has no end until the new attempts have theirs.
local function reopen()
  if facts.state == 'released' then return end
  redis.call('ZREM', retained_key(), tenant .. '|' .. suffix)
  redis.call('ZADD', live_key(tenant), redis.call('HGET', history, 'created'), suffix)
  redis.call('HSET', history, 'state', 'released')
  redis.call('HDEL', history, 'finished', 'expires')
  for _, key in ipairs({ history, outcomes_key(suffix), reached_key(suffix) }) do redis.call('PERSIST', key) end
end

local function leg_of(plan, channel)
  for _, leg in ipairs(plan) do
    if leg.channel == channel then return leg end
  end
end

local function add_leg(plan, channel, blob, items)
  local leg = leg_of(plan, channel)
  local n = #leg.parcels
  leg.parcels[n + 1] = #items
  redis.call('HSET', history, 'parcel:' .. channel .. ':' .. n, blob)
  -- The first parcel of those tried again: an earlier one may still be at work and speak of the same people.
  redis.call('HSETNX', history, 'retried:' .. channel, n)
  if redis.call('HINCRBY', history, 'left:' .. channel, #items) == #items then redis.call('HINCRBY', history, 'reported', -1) end
  record(suffix, channel, items, true)
  facts.expires = nil
  add_parcel(suffix, facts, channel, n, #items)
  return #items
end

reopen()
local plan, queued = plan_of(suffix), 0
for _, leg in ipairs(legs) do queued = queued + add_leg(plan, leg[1], leg[2], leg[3]) end
save_plan(suffix, plan)
return { 'retried', queued }
