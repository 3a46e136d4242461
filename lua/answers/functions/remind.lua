-- remind: remind those who have not answered the question of a delivery, in one step
-- ARGV    suffix, tenant, wave:int, by
--         wave: which reminder it is, from 1: a repeat changes nothing; by: who wants it, "" if it was planned
-- RETURNS ["reminded", people], or ["missing"] ["again"] ["closed"] ["unsent"] ["enough"]; again: this wave was sent before;
--         unsent: the delivery is not released; enough: there are as many reminders as the question allows
-- EVENTS  reminded; for deliveries that fell due before: outcomes, reported, released and finished
-- INVARIANT I27 a reminder never goes to who has answered; at most as many waves as the question allows

return function(suffix, tenant, wave, by)
  local facts = redis_call('HMGET', Key.history(suffix), 'tenant', 'answer')
  if facts[1] ~= tenant or not facts[2] then return { 'missing' } end
  return Reminders.remind(suffix, tenant, wave, by)
end
