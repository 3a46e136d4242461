-- audit_keys: reads the type and the TTL of keys, in one atomic read
-- ARGV    names:rest
-- RETURNS for each [type, TTL in ms; -1 without a TTL, -2 if the key is gone]
-- EVENTS  none

return function(names)
  local reply = {}
  for _, name in ipairs(names) do reply[#reply + 1] = { redis_call('TYPE', name).ok, redis_call('PTTL', name) } end
  return reply
end
