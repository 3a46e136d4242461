-- cancel_tasks: end the tasks with these ids; flag those that are taken
-- ARGV    ids:rest
-- USES    write_buffer, task, parcels
-- RETURNS [ended, flagged, ids that are left because the work would take too long]
-- EVENTS  cancelled; for parcels also outcomes, reported and finished
-- INVARIANT I11

local ended, flagged, left = 0, 0, 0
gather()
for n, id in ipairs(ids) do
  if not may_close() then
    left = #ids - n + 1
    break
  end
  local task = read_task(id)
  if task and task.state == 'taken' then
    redis.call('HSET', task_key(id), 'cancel', 1)
    flagged = flagged + 1
  elseif task then
    if task.history then
      redis.call('HSET', history_key(task.history), 'withdrawn', 1)
      close_parcel(id, task, 'cancelled')
    else
      end_task(id, task, 'cancelled')
    end
    ended = ended + 1
  end
end
write_gathered()
return { ended, flagged, left }
