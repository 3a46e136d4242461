-- park_run: note what the steps of a run wait for; without steps, the task that drives it from now on
-- ARGV    run, task, waits:rest
--         task: the task that is woken, of its event or of an answer to it; waits: path, what, …; what: `slow` for a step with a task of
--         its own, `ask:…` for an answer, otherwise a word; behind a space the history key of a delivery whose end wakes the run
-- RETURNS 1, or 0 if there is no such run
-- EVENTS  none

return function(run, task, waits)
  if redis_call('EXISTS', Key.run(run)) == 0 then return 0 end
  if #waits == 0 then redis_call('HSET', Key.run(run), 'task', task) end
  for n = 1, #waits, 2 do
    redis_call('HSET', Key.run(run), 'waits:' .. waits[n], waits[n + 1])
    local delivery = string.match(waits[n + 1], ' (.*)$')
    if delivery then redis_call('ZADD', Key.parked(), now, run .. ' ' .. task .. ' ' .. delivery) end
  end
  redis_call('PEXPIRE', Key.parked(), 90 * DAY_MS)
  return 1
end
