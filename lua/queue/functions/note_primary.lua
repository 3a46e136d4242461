-- note_primary: note which server is the primary. Another one than before may lack the last writes: a new epoch begins
-- ARGV    grace_ms:int
--         grace_ms: no lease ends before this time has passed: its worker could not extend it during the outage
-- RETURNS 1 if a new epoch has begun, else 0
-- EVENTS  none
-- INVARIANT I8 a number that an old worker may hold is not given out again

local JUMP = 1000000
local PAGE = 500

local function extend_leases(until_ms)
  local ending = redis_call('ZRANGEBYSCORE', Key.lease(), '-inf', until_ms)
  for from = 1, #ending, PAGE do
    local words = {}
    for n = from, math.min(from + PAGE - 1, #ending) do WriteBuffer.add_words(words, until_ms, ending[n]) end
    redis_call('ZADD', Key.lease(), unpack(words))
  end
end

return function(grace_ms)
  local primary = string.match(redis_call('INFO', 'replication'), 'master_replid:(%x+)')
  local known = redis_call('HGET', Key.primary(), 'id')
  if primary == known then return 0 end
  redis_call('HSET', Key.primary(), 'id', primary)
  if not known then return 0 end
  redis_call('HINCRBY', Key.primary(), 'epoch', 1)
  for _, name in ipairs({ 'order', 'token' }) do redis_call('HINCRBY', Key.counters(), name, JUMP) end
  extend_leases(now + grace_ms)
  return 1
end
