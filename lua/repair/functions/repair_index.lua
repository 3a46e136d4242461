-- repair_index: removes members that name no live task from an index
-- ARGV    index, kept:int, ids:rest
--         kept: 1 for the index of ended tasks that are kept
-- RETURNS one line for each change; none if nothing was wrong
-- EVENTS  none
-- INVARIANT I6

return function(index, kept, ids)
  local of_buried = string.sub(index, 1, #Key.dead_letter('')) == Key.dead_letter('')
  for _, id in ipairs(ids) do
    local task = Record.stored(id)
    local is_there = task and (task.ended ~= nil) == (kept == 1)
    if is_there and of_buried and task.state ~= 'buried' then is_there = false end
    if not is_there then Repair.leave_index(index, 'the index', id) end
  end
  return Repair.changes
end
