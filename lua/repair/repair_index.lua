-- repair_index: removes members that name no live task from an index
-- ARGV    index, kept:int, ids:rest
--         kept: 1 for the index of ended tasks that are kept
-- USES    task, repair
-- RETURNS one line for each change; none if nothing was wrong
-- EVENTS  none
-- INVARIANT I6

for _, id in ipairs(ids) do
  local is_there = read_task(id) ~= nil
  if kept == 1 then is_there = redis.call('HEXISTS', task_key(id), 'ended') == 1 end
  if not is_there then leave_index(index, 'the index', id) end
end
return changes
