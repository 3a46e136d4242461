-- audit_lanes: lanes of a tube with their first task, their holder and their offer, seen in one moment
-- ARGV    tube, tenant, lanes:rest
--         tenant: under whom each is said to be offered; "" for its first task's own
-- RETURNS for each [lane, size, head, its place, holder, state of the holder, tenant, priority, order, state of the head,
--         score under the head's tenant, score under `tenant`]
-- EVENTS  none

local function offer_of(owner, lane) return owner and redis.call('ZSCORE', ready_key(tube, owner), '@' .. lane) end

local function seen(lane)
  local head = redis.call('ZRANGE', lane_key(tube, lane), 0, 0, 'WITHSCORES')
  local holder = redis.call('HGET', held_key(tube), lane)
  local facts = redis.call('HMGET', task_key(head[1] or ''), 'tenant', 'priority', 'order', 'state')
  return {
    lane, redis.call('ZCARD', lane_key(tube, lane)), head[1] or false, head[2] or false, holder,
    holder and redis.call('HGET', task_key(holder), 'state'), facts[1], facts[2], facts[3], facts[4],
    offer_of(facts[1], lane), tenant ~= '' and offer_of(tenant, lane),
  }
end

local reply = {}
for _, lane in ipairs(lanes) do reply[#reply + 1] = seen(lane) end
return reply
