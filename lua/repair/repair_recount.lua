-- repair_recount: writes the counters of a delivery from a recount of its outcomes, if it has not changed since
-- ARGV    suffix, version, counts:json, reached:json
--         counts: field → number; reached: numbers of the recipients reached
-- USES    repair
-- RETURNS one line for each change; none if the delivery changed since
-- EVENTS  none
-- INVARIANT I13

local history = history_key(suffix)
if redis.call('HGET', history, 'version') ~= version then return changes end
for name, number in pairs(counts) do redis.call('HSET', history, name, number) end
local left = redis.call('PTTL', reached_key(suffix))
redis.call('DEL', reached_key(suffix))
for _, number in ipairs(reached) do redis.call('SETBIT', reached_key(suffix), number, 1) end
if left < 0 then left = redis.call('PTTL', history) end
if left > 0 then redis.call('PEXPIRE', reached_key(suffix), left) end
note('recounted')
return changes
