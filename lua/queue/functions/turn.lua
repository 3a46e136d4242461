-- turn: settle finished attempts and claim the next tasks in one step, for a worker that has no room before
-- ARGV    tube, owner, account, limit:int, budget:int, lease_ms:int, max_sleep_ms:int, attempts:rest
--         attempts: as in settle; the others: as in claim
-- RETURNS [the states that settle returns, what claim returns]
-- EVENTS  del of bells; outcomes, reported, released and finished
-- INVARIANT those of settle and claim; a task that follows a settled one in its lane may be among the claimed ones

return function(tube, owner, account, limit, budget, lease_ms, max_sleep_ms, attempts)
  local states = Settling.settle_attempts(attempts)
  return { states, Claiming.claim_tasks({
    tube = tube, owner = owner, account = account, limit = limit, budget = budget, lease_ms = lease_ms, max_sleep_ms = max_sleep_ms,
  }) }
end
