-- audit_lanes: lanes of a tube, who stands first in each, and how it is offered, seen in one moment
-- ARGV    tube, tenant, lanes:rest
--         tenant: under whom each is said to be offered; "" for its first task's own
-- RETURNS for each [lane, its first task, how many stand behind, tube, lane, tenant, priority, order and state of the first,
--         score under that tenant, score under `tenant`]
-- EVENTS  none

local function offer_of(owner, lane) return owner and redis.call('ZSCORE', ready_key(tube, owner), '@' .. lane) end

local function seen(lane)
  local first = redis.call('HGET', front_key(tube), lane)
  local facts = redis.call('HMGET', task_key(first or ''), 'tube', 'lane', 'tenant', 'priority', 'order', 'state')
  return {
    lane, first, redis.call('ZCARD', lane_key(tube, lane)), facts[1], facts[2], facts[3], facts[4], facts[5], facts[6],
    offer_of(facts[3], lane), tenant ~= '' and offer_of(tenant, lane),
  }
end

local reply = {}
for _, lane in ipairs(lanes) do reply[#reply + 1] = seen(lane) end
return reply
