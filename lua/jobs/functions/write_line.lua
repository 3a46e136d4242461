-- write_line: add a line to the live log of a job, with the mark by which a repetition of the iteration knows it
-- ARGV    id, holder, name, value, log
--         name, value: the mark, kept until the iteration ends, name "" for none; log: the line, "" for none
-- RETURNS as check_attempt; after "lost" nothing was written, after "stopped" only the line
-- EVENTS  del of the bell of the job's log
-- INVARIANT I24; only the attempt that began the iteration last writes

return function(id, holder, name, value, log)
  local state, is_late = JobAttempt.state(id, holder)
  if state == 'lost' then return state end
  if name ~= '' and not is_late then JobSteps.write(id, name, value) end
  if log ~= '' then JobLog.append_log(id, log) end
  return state
end
