-- audit_counts: reads counters and the sizes of indexes, in one atomic read
-- ARGV    indexes:rest
--         indexes: keys of sorted sets
-- RETURNS [transitions (name, value, …), tasks by state (name, value, …), size of each index, …]
-- EVENTS  none

local reply = { redis.call('HGETALL', counters_key()), redis.call('HGETALL', states_key()) }
for _, index in ipairs(indexes) do reply[#reply + 1] = redis.call('ZCARD', index) end
return reply
