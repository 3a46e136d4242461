-- count_refused_reply: count a recipient that has replied to a delivery whose replies nobody reads; each counts once
-- ARGV    suffix, number:int
--         number: of the recipient
-- RETURNS how many have replied; 0 if the delivery is no longer kept
-- EVENTS  none

return function(suffix, number)
  local history = Key.history(suffix)
  if redis_call('EXISTS', history) == 0 then return 0 end
  if redis_call('HSETNX', history, 'refused_reply:' .. number, '1') == 1 then redis_call('HINCRBY', history, 'refused_replies', 1) end
  return tonumber(redis_call('HGET', history, 'refused_replies'))
end
