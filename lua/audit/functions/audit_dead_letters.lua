-- audit_dead_letters: reads the sizes of groups of buried tasks, in one atomic read
-- ARGV    groups:rest
-- RETURNS for each [group, its size in the list or false, its size]
-- EVENTS  none

return function(groups)
  local reply = {}
  for _, group in ipairs(groups) do
    reply[#reply + 1] = { group, redis_call('ZSCORE', Key.dead_letters(), group), redis_call('ZCARD', Key.dead_letter(group)) }
  end
  return reply
end
