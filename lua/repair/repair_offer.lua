-- repair_offer: withdraws an offer that cannot be taken
-- ARGV    tube, tenant, member
-- USES    fairness, lane, task, repair
-- RETURNS one line for each change; none if nothing was wrong
-- EVENTS  del of the bell
-- INVARIANT I3

local lane = string.match(member, '^@(.*)$')

local function is_valid()
  if not lane then
    local task = read_task(member)
    return task and task.tube == tube and task.tenant == tenant and not task.lane and task.state == 'ready'
  end
  local first = read_task(front_of(tube, lane) or '')
  return first and first.tenant == tenant and first.state == 'ready'
end

if redis.call('ZSCORE', ready_key(tube, tenant), member) and not is_valid() then
  withdraw(tube, tenant, member)
  note('offer withdrawn')
end
if lane then repair_lane(tube, lane) end
return changes
