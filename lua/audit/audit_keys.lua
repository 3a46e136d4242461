-- audit_keys: type and ms to live of keys, seen in one moment
-- ARGV    names:rest
-- RETURNS for each [type, ms to live; -1 for ever, -2 if it is gone]
-- EVENTS  none

local reply = {}
for _, name in ipairs(names) do reply[#reply + 1] = { redis.call('TYPE', name).ok, redis.call('PTTL', name) } end
return reply
