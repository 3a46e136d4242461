-- bury: set a task aside until an operator kicks or cancels it; its lane goes on
-- ARGV    id
-- RETURNS 1, or 0 if there is no such task or it is taken
-- EVENTS  buried

return function(id)
  local task = Record.read(id)
  if not task or task.state == 'taken' then return 0 end
  if task.state ~= 'buried' then Task.bury(id, task) end
  return 1
end
