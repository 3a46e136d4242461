-- cancel_tasks: end the tasks with these ids; flag those that are taken
-- ARGV    ids:rest
-- RETURNS [ended, flagged, ids that are left because the work would take too long]
-- EVENTS  cancelled; for parcels also outcomes, reported and finished
-- INVARIANT I11

return function(ids)
  local ended, flagged, left = 0, 0, 0
  Record.learn(ids, true)
  WriteBuffer.gather()
  for n, id in ipairs(ids) do
    if not Kinds.may_end() then
      left = #ids - n + 1
      break
    end
    local task = Record.read(id)
    if task and task.state == 'taken' then
      redis_call('HSET', Key.progress(id), 'cancel', 1)
      flagged = flagged + 1
    elseif task then
      Kinds.of(task).withdraw(id, task)
      ended = ended + 1
    end
  end
  WriteBuffer.write_gathered()
  return { ended, flagged, left }
end
