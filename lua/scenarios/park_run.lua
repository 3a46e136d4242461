-- park_run: note what the steps of a run wait for
-- ARGV    run, waits:rest
--         waits: path, history key, …; the word `slow` instead of a history key for a step with a task of its own
-- RETURNS 1, or 0 if there is no such run
-- EVENTS  none

if redis.call('EXISTS', run_key(run)) == 0 then return 0 end
for n = 1, #waits, 2 do
  redis.call('HSET', run_key(run), 'waits:' .. waits[n], waits[n + 1])
  if waits[n + 1] ~= 'slow' then redis.call('ZADD', parked_key(), now, run .. ' ' .. waits[n + 1]) end
end
redis.call('PEXPIRE', parked_key(), 90 * DAY_MS)
return 1
