-- repair_offer: withdraws an offer that cannot be taken
-- ARGV    tube, tenant, member
-- RETURNS one line for each change; none if nothing was wrong
-- EVENTS  del of the bell
-- INVARIANT I3

return function(tube, tenant, member)
  local lane = string.match(member, '^@(.*)$')

  local function is_valid()
    if not lane then
      local task = Record.read(member)
      return task and task.tube == tube and task.tenant == tenant and not task.lane and task.state == 'ready'
    end
    local first = Record.read(Lane.head_of(tube, lane) or '')
    return first and first.tenant == tenant and first.state == 'ready'
  end

  if redis_call('ZSCORE', Key.ready(tube, tenant), member) and not is_valid() then
    Fairness.withdraw(tube, tenant, member)
    Repair.note('offer withdrawn')
  end
  if lane then Repair.repair_lane(tube, lane) end
  return Repair.changes
end
