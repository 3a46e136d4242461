-- audit_lanes: reads lanes of a tube, the first task of each and its offer, in one atomic read
-- ARGV    tube, tenant, lanes:rest
--         tenant: the tenant under which a lane is offered; "" for the tenant of its first task
-- RETURNS for each [lane, its first task, number of tasks behind it, tube, lane, tenant, priority, order and state of the first,
--         score under that tenant, score under `tenant`]
-- EVENTS  none

return function(tube, tenant, lanes)
  local function offer_of(owner, lane) return owner and redis_call('ZSCORE', Key.ready(tube, owner), '@' .. lane) end

  local function row_of(lane)
    local first = redis_call('HGET', Key.head(tube), lane)
    local task = first and Record.peek(first) or {}
    return {
      lane, first, redis_call('ZCARD', Key.lane(tube, lane)), task.tube or false, task.lane or false, task.tenant or false,
      Record.text_of(task.priority), Record.text_of(task.order), task.state or false, task.tenant and offer_of(task.tenant, lane) or false,
      tenant ~= '' and offer_of(tenant, lane),
    }
  end

  local reply = {}
  for _, lane in ipairs(lanes) do reply[#reply + 1] = row_of(lane) end
  return reply
end
