-- bury: set a task aside until an operator kicks or cancels it; its lane goes on
-- ARGV    id
-- USES    task
-- RETURNS 1, or 0 if there is no such task or it is taken
-- EVENTS  buried

local task = read_task(id)
if not task or task.state == 'taken' then return 0 end
if task.state ~= 'buried' then bury_task(id, task) end
return 1
