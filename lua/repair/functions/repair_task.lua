-- repair_task: puts a task into the indexes of its state and removes it from all others
-- ARGV    id
-- RETURNS one line for each change; none if nothing was wrong
-- EVENTS  del of the bell
-- INVARIANT I1, I2, I3, I5, I6

local KNOWN = { waiting = true, ready = true, taken = true, buried = true }

return function(id)
  local task = Record.read(id)
  if not task then
    if Record.stored(id) then TaskRepair.repair_ended(id) end
  elseif KNOWN[task.state] and task.tenant and task.priority and task.order then
    TaskRepair.repair_live(id, task)
  end
  return Repair.changes
end
