-- claim: give up to `limit` ready tasks of a tube to a worker; first leases end, tasks expire and deferred tasks become ready
-- ARGV    tube, owner, account, limit:int, budget:int, lease_ms:int, max_sleep_ms:int
--         budget: claim no further task once the claimed ones have this many entries (a task without entries counts as one)
-- RETURNS [now, µs since then, when something is due next or -1, 1 if this owner keeps the timer, throttles in force, when a throttle
--         or the pace allows the next task or -1, task, …]
--         task: [id, token, attempts, started, body, checkpoint, left, kind, lane, expires, user, tenant] and for parcels
--         also [history suffix, parcel, text, closed, place of the channel in the strategy first, content if there is one]
-- EVENTS  del of bells (for tasks that became ready); outcomes, reported, released and finished
-- INVARIANT I2 of a lane only the first is taken; I10 nothing before due or after expiry; I12 attempts are counted here

return function(tube, owner, account, limit, budget, lease_ms, max_sleep_ms)
  return Claiming.claim_tasks({
    tube = tube, owner = owner, account = account, limit = limit, budget = budget, lease_ms = lease_ms, max_sleep_ms = max_sleep_ms,
  })
end
