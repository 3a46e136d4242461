-- repair_dead_letters: corrects the size of a group of buried tasks in the list of the groups
-- ARGV    group
-- RETURNS one line for each change; none if nothing was wrong
-- EVENTS  none
-- INVARIANT I6

return function(group)
  local listed = tonumber(redis_call('ZSCORE', Key.dead_letters(), group) or '0')
  if listed == redis_call('ZCARD', Key.dead_letter(group)) then return Repair.changes end
  DeadLetters.list(group)
  Repair.note('size corrected')
  return Repair.changes
end
