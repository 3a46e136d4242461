-- send_signal: store a signal for a job, and wake the job if it waits for it
-- ARGV    id, expected:int, signal, entry, most:int, log, document, due, tube, task:rest
--         expected: the version that was read; signal: its id; entry: it as JSON; most: how many may wait; log: a line for the live log;
--         document: the job after its waking, "" if it does not wait for this signal; due: ms; task: as in put, or nothing
-- RETURNS "sent", also for a repetition; otherwise nothing was written: "changed" if the job has another version by now; "full" if too
--         many signals wait
-- EVENTS  del of bells, also that of the job's log; for deliveries that fell due before: outcomes, reported, released and finished
-- INVARIANT I22, I23; a signal is stored once

local REMEMBERED_MS = 86400000

return function(id, expected, signal, entry, most, log, document, due, tube, task)
  local seen = Key.job_signal(id, signal)
  if redis_call('EXISTS', seen) == 1 then return 'sent' end
  if tonumber(redis_call('HGET', Key.job(id), 'version')) ~= expected then return 'changed' end
  if redis_call('LLEN', Key.job_signals(id)) >= most then return 'full' end
  redis_call('SET', seen, '', 'PX', REMEMBERED_MS)
  redis_call('RPUSH', Key.job_signals(id), entry)
  JobLog.append_log(id, log)
  if document ~= '' then
    redis_call('HSET', Key.job(id), 'version', expected + 1, 'record', document)
    redis_call('ZADD', Key.jobs_due(), due, id)
    JobTask.put(id, tube, task)
  end
  return 'sent'
end
