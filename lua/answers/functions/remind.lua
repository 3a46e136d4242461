-- remind: remind those who have not answered the question of a delivery, in one step
-- ARGV    suffix, tenant, wave:int, by, opted_out:rest
--         wave: which reminder it is, from 1: a repeat changes nothing; by: who wants it, "" if it was planned; opted_out: `channel:number`
--         of each recipient that wants no messages there any more, `channel:number:contact` of each address that it has no more
-- RETURNS ["reminded", people], or ["missing"] ["again"] ["closed"] ["unsent"] ["enough"]; again: this wave was sent before;
--         unsent: the delivery is not released; enough: there are as many reminders as the question allows
-- EVENTS  reminded; for deliveries that fell due before: outcomes, reported, released and finished
-- INVARIANT I27 a reminder never goes to who has answered; at most as many waves as the question allows

return function(suffix, tenant, wave, by, opted_out)
  local facts = redis_call('HMGET', Key.history(suffix), 'tenant', 'answer')
  if facts[1] ~= tenant or not facts[2] then return { 'missing' } end
  local unwanted = {}
  for _, word in ipairs(opted_out) do unwanted[word] = true end
  return Reminders.remind(suffix, tenant, wave, by, unwanted)
end
