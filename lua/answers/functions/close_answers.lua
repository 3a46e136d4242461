-- close_answers: close the question of a delivery: later answers are late
-- ARGV    suffix, tenant, only_due:int
--         only_due: 1 closes it only if its time has come
-- RETURNS "closed", "over" if it was closed before, "early" if its time has not come, "missing"
-- EVENTS  closed; for deliveries that fell due before: outcomes, reported, released and finished
-- INVARIANT a question is closed once

return function(suffix, tenant, only_due)
  local facts = redis_call('HMGET', Key.history(suffix), 'tenant', 'answer', 'answers_until')
  if facts[1] ~= tenant or not facts[2] then return 'missing' end
  if only_due == 1 and not (facts[3] and now >= tonumber(facts[3])) then return 'early' end
  return Answers.close(suffix) and 'closed' or 'over'
end
