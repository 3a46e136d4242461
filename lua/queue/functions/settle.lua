-- settle: end attempts. In one step outcomes are written and the lane is freed, or the task waits for its next attempt
-- ARGV    attempts:rest
--         for each id, token, result, due, checkpoint, unclear, outcomes (JSON or ""), body, answer, error
--         result: done, failed, bury, retry; a parcel with open entries always waits until `due` (0: ready at once)
--         checkpoint: for the next attempt; unclear: open entries that may have been sent to, as outcomes (JSON or "")
--         body: replaces the task's body if it goes on, "" leaves it (K-37); answer: for the clients that wait for the end
--         error: why the attempt failed, for operators; "" leaves the one before
-- RETURNS for each "done", "failed", "waiting", "ready", "buried", "cancelled" or "stale"
-- EVENTS  outcomes, reported, finished
-- INVARIANT I8 an old token changes nothing; I11 a cancelled task is not retried; I12 a retry beyond the last attempt is
--         buried; I15 no lane is left stuck

return function(attempts)
  return Settling.settle_attempts(attempts)
end
