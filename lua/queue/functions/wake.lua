-- wake: have a waiting task attempted now; a taken one again, if it is suspended after this attempt
-- ARGV    id
-- RETURNS 1, or 0 if the task has ended or is not waiting
-- EVENTS  del of the bell; for deliveries that fell due before: outcomes, reported, released and finished
-- INVARIANT a wake-up between the claim and `suspend` is not lost; tasks that fell due before enter their lane before the woken one

return function(id)
  local task = Record.read(id)
  if not task then return 0 end
  if task.state == 'taken' then
    redis_call('HSET', Key.progress(id), 'woken', 1)
    return 1
  end
  if task.state ~= 'waiting' then return 0 end
  local due = math.min(task.due, now)
  Timers.new_moment(due)
  Task.put_off(id, task, due)
  Due.tick()
  return 1
end
