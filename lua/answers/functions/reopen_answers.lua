-- reopen_answers: open the question of a delivery again: answers count again
-- ARGV    suffix, tenant, closes:int
--         closes: when it closes by itself, ms, 0 for never
-- RETURNS "reopened", "open" if it was not closed, "missing", "cancelled" if the delivery was
-- EVENTS  closed, reopened; for deliveries that fell due before: outcomes, reported, released and finished
-- INVARIANT a press never opens a question again

return function(suffix, tenant, closes)
  local facts = redis_call('HMGET', Key.history(suffix), 'tenant', 'answer', 'state')
  if facts[1] ~= tenant or not facts[2] then return 'missing' end
  if facts[3] == 'cancelled' then return 'cancelled' end
  return Answers.reopen(suffix, closes) and 'reopened' or 'open'
end
