-- audit_counts: reads counters and the sizes of indexes, in one atomic read
-- ARGV    indexes:rest
--         indexes: keys of sorted sets
-- RETURNS [transitions (name, value, …), tasks by state (name, value, …), size of each index, …]
-- EVENTS  none

return function(indexes)
  local reply = { redis_call('HGETALL', Key.counters()), redis_call('HGETALL', Key.states()) }
  for _, index in ipairs(indexes) do reply[#reply + 1] = redis_call('ZCARD', index) end
  return reply
end
