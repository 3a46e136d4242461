-- ask_wave: ask further people of a delivery whose question needs a number of confirmations
-- ARGV    suffix, tenant, wave:int
--         wave: which wave comes by time, from 1: a repeat changes nothing; 0: somebody has declined
-- RETURNS ["asked", people], or ["missing"] ["again"] ["closed"] ["unsent"] ["enough"]; enough: as many have confirmed as are needed
-- EVENTS  for deliveries that fell due before: outcomes, reported, released and finished
-- INVARIANT I29 nobody is asked before its turn

return function(suffix, tenant, wave)
  local facts = redis_call('HMGET', Key.history(suffix), 'tenant', 'answer')
  if facts[1] ~= tenant or not facts[2] then return { 'missing' } end
  return Waves.ask_next(suffix, wave)
end
