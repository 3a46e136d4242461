-- mend_unit: replace or remove what is recorded of a unit or an effect, as an operator has decided
-- ARGV    id, name, expected, value, item, log
--         expected: what was read of it; value: what replaces it, "" removes it; item: the unit that is handled again because of it, or "";
--         log: a line for the live log
-- RETURNS "mended"; "changed" if something else is recorded by now; "in_hand" if an attempt has begun it and its lease is still valid
-- EVENTS  del of the bell of the job's log
-- INVARIANT what is being done at this moment is not changed

return function(id, name, expected, value, item, log)
  if redis_call('HGET', Key.job_units(id), name) ~= expected then return 'changed' end
  if cjson.decode(expected).status == 'begun' and JobAttempt.is_running(id) then return 'in_hand' end
  if value ~= '' then redis_call('HSET', Key.job_units(id), name, value) else redis_call('HDEL', Key.job_units(id), name) end
  if item ~= '' then redis_call('HDEL', Key.job_units(id), item) end
  JobLog.append_log(id, log)
  return 'mended'
end
