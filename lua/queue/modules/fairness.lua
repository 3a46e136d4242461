-- fairness: offers what is takeable under its tenant; tenants take turns
-- A lane is offered as `@lane` with the score of its first task; a task without a lane is offered as itself.

-- Priority first, then the order of submission: one step of priority outweighs every order.
function Fairness.score_of(priority, order) return priority * PRIORITY_STEP + order end

-- The bell: deleting it wakes the sleeping workers of that tube, once per idle period.
local rung
function Fairness.ring(tube)
  if rung[tube] then return end
  rung[tube] = true
  redis_call('DEL', Key.bell(tube))
end

-- Tenants take turns by virtual time: a turn costs a tenant TURN / weight, and a tenant that joins stands one turn of its own behind
-- the tenant served last. So no tenant saves up turns or pays for old ones, and a tenant that leaves with each turn and comes back (a
-- single lane) does not overtake those that waited (I15).
local TURN = 1000
function Fairness.turn_of(tenant) return math.floor(TURN / tonumber(redis_call('HGET', Key.weights(), tenant) or '1')) end

function Fairness.join_ring(tube, tenant)
  if redis_call('ZSCORE', Key.tenants(tube), tenant) then return end
  redis_call('ZADD', Key.tenants(tube), tonumber(redis_call('HGET', Key.turns(), tube) or '0') + Fairness.turn_of(tenant), tenant)
end

function Fairness.offer(tube, tenant, member, score)
  Fairness.ring(tube)
  local key = Key.ready(tube, tenant)
  local offers = WriteBuffer.gathered and WriteBuffer.gathered.offers[key]
  if not offers or not next(offers) then Fairness.join_ring(tube, tenant) end
  if not WriteBuffer.gathered then return redis_call('ZADD', key, score, member) end
  offers = offers or {}
  offers[member] = score
  WriteBuffer.gathered.offers[key] = offers
end

function Fairness.withdraw(tube, tenant, member)
  local key = Key.ready(tube, tenant)
  local offers = WriteBuffer.gathered and WriteBuffer.gathered.offers[key]
  if offers then offers[member] = nil end
  redis_call('ZREM', key, member)
  if redis_call('EXISTS', key) == 0 and not (offers and next(offers)) then redis_call('ZREM', Key.tenants(tube), tenant) end
end

-- A new call forgets which bells the call before has rung.
function Fairness.begin()
  rung = {}
end
