-- write_iteration: write what an iteration has done, if the job is still taken by its attempt
-- ARGV    id, holder, kind, name, value, log, place, own
--         kind: "step" (a result, kept until the iteration ends), "line" (a mark that `log` was written, kept as long), "unit" (what
--         became of an item or an effect, kept with the job; value "" removes it), "intent" (an effect that is about to begin; its
--         name is kept until the iteration ends), "over" (the attempt ends in order), or "" (only the log);
--         log: a line for the live log, or ""; own: the state of the job's own after it, as JSON, or ""; place: the name under which a
--         repetition of the iteration finds that
-- RETURNS the state of the job; "lost" if another attempt has it: nothing was written; "stopped" if it was stopped meanwhile, even if it
--         was started again: only a unit, the state and the log were written. An intent is written only if the state is "running",
--         or "stopping" and it is a compensation
-- EVENTS  del of the bell of the job's log
-- INVARIANT I24; only the attempt that began the iteration last writes; no effect begins in a job that does not run

local function write(id, kind, name, value, is_late)
  if (kind == 'step' or kind == 'line') and not is_late then JobSteps.write(id, name, value) end
  -- A process with other code sees by it what the iteration has begun.
  if kind == 'intent' then JobSteps.write(id, name, '') end
  if kind == 'unit' and value ~= '' and not is_late then JobSteps.note(id, name) end
  if (kind == 'unit' or kind == 'intent') and value ~= '' then redis_call('HSET', Key.job_units(id), name, value) end
  if kind == 'unit' and value == '' then redis_call('HDEL', Key.job_units(id), name) end
  if kind == 'over' then redis_call('HDEL', Key.job(id), 'holder') end
  -- What goes on is no reason to suspect it.
  if (kind == 'step' or kind == 'unit') and value ~= '' then redis_call('HDEL', Key.job(id), 'losses') end
end

-- A job that is stopping begins only its compensations.
local function may_begin(name, state)
  return state == 'running' or (state == 'stopping' and name:sub(1, 18) == 'effect:compensate ')
end

return function(id, holder, kind, name, value, log, place, own)
  local stored = redis_call('HMGET', Key.job(id), 'holder', 'state')
  local is_late = stored[1] == 'late:' .. holder
  if stored[1] ~= holder and not is_late then return 'lost' end
  local state = is_late and 'stopped' or stored[2]
  if kind == 'intent' and not may_begin(name, state) then return state end
  write(id, kind, name, value, is_late)
  if own ~= '' then redis_call('HSET', Key.job(id), 'own', own) end
  if own ~= '' and not is_late then JobSteps.write(id, place, own) end
  if log ~= '' then JobLog.append_log(id, log) end
  return state
end
