-- repair_offer: withdraw what is offered and cannot be taken
-- ARGV    tube, tenant, member
-- USES    write_buffer, ready, repair
-- RETURNS what was done, a line each; none if it was in order
-- EVENTS  del of the bell
-- INVARIANT I3

local lane = string.match(member, '^@(.*)$')

local function is_right()
  if not lane then
    local task = read_task(member)
    return task and task.tube == tube and task.tenant == tenant and not task.lane and task.state == 'ready'
  end
  local first = read_task(front_of(tube, lane) or '')
  return first and first.tenant == tenant and first.state == 'ready'
end

if redis.call('ZSCORE', ready_key(tube, tenant), member) and not is_right() then
  withdraw(tube, tenant, member)
  note('offered no more')
end
if lane then set_lane_right(tube, lane) end
return did
