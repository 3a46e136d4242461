-- park_run: note what the steps of a run wait for
-- ARGV    run, waits:rest
--         waits: path, history key, …; the word `slow` instead of a history key for a step with a task of its own
-- RETURNS 1, or 0 if there is no such run
-- EVENTS  none

return function(run, waits)
  if redis_call('EXISTS', Key.run(run)) == 0 then return 0 end
  for n = 1, #waits, 2 do
    redis_call('HSET', Key.run(run), 'waits:' .. waits[n], waits[n + 1])
    if waits[n + 1] ~= 'slow' then redis_call('ZADD', Key.parked(), now, run .. ' ' .. waits[n + 1]) end
  end
  redis_call('PEXPIRE', Key.parked(), 90 * DAY_MS)
  return 1
end
