-- fairness: what is takeable is offered under its tenant, and tenants take turns
-- USES    write_buffer
-- A lane is offered as `@lane` with the score of its first task; a task without a lane is offered as itself.

-- Priority first, then the order of submission: one step of priority outweighs every order.
local function score_of(priority, order) return priority * PRIORITY_STEP + order end

-- The bell: deleting it wakes the sleeping workers of that tube, once per idle period.
local rung = {}
local function ring(tube)
  if rung[tube] then return end
  rung[tube] = true
  redis.call('DEL', bell_key(tube))
end

-- Tenants take turns by virtual time: a turn costs a tenant TURN / weight, and a tenant that joins stands one turn of its own behind
-- the tenant served last. So no tenant saves up turns or pays for old ones, and a tenant that leaves with each turn and comes back (a
-- single lane) does not overtake those that waited (I15).
local TURN = 1000
local function turn_of(tenant) return math.floor(TURN / tonumber(redis.call('HGET', weights_key(), tenant) or '1')) end

local function join_ring(tube, tenant)
  if redis.call('ZSCORE', tenants_key(tube), tenant) then return end
  redis.call('ZADD', tenants_key(tube), tonumber(redis.call('HGET', turns_key(), tube) or '0') + turn_of(tenant), tenant)
end

local function offer(tube, tenant, member, score)
  ring(tube)
  local key = ready_key(tube, tenant)
  local offers = gathered and gathered.offers[key]
  if not offers or not next(offers) then join_ring(tube, tenant) end
  if not gathered then return redis.call('ZADD', key, score, member) end
  offers = offers or {}
  offers[member] = score
  gathered.offers[key] = offers
end

local function withdraw(tube, tenant, member)
  local key = ready_key(tube, tenant)
  local offers = gathered and gathered.offers[key]
  if offers then offers[member] = nil end
  redis.call('ZREM', key, member)
  if redis.call('EXISTS', key) == 0 and not (offers and next(offers)) then redis.call('ZREM', tenants_key(tube), tenant) end
end
