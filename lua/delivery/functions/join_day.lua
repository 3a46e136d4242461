-- join_day: add a text to the message of the day of an address, ask what has become of it, or take all texts to send them
-- ARGV    tenant, channel, address, name, part, step, window_ms:int, lost_ms:int
--         name: of the part, the same in each claim of its entry; part: a text that is returned as it is
--         step: `join`; `follow`: of a part that has joined before; `send`: follow, and take all if the window is over; `leave`: take the
--         part back
--         window_ms: from the first part on further ones are waited for; lost_ms: who has taken parts for longer has been killed
-- RETURNS ["gathers", ms until the window is over] ["taken"] ["left"] ["lost"]: it may have been sent; ["ended", outcome]
--         ["sends", name, part, …]: the caller sends these parts now, and calls end_day
-- EVENTS  none
-- INVARIANT a part is taken once; a repeat of a call takes nothing

local KEPT_MS = 3600000

-- Returns all parts: name, part, …
local function take_all(key)
  local parts, fields = { 'sends' }, redis_call('HGETALL', key)
  for n = 1, #fields, 2 do
    local name = string.match(fields[n], '^part:(.*)$')
    if name then
      parts[#parts + 1], parts[#parts + 2] = name, fields[n + 1]
      redis_call('HDEL', key, fields[n])
      redis_call('HSET', key, 'taken:' .. name, now)
    end
  end
  redis_call('HDEL', key, 'first', 'waiting')
  return parts
end

local function leave(key, name)
  redis_call('HDEL', key, 'part:' .. name)
  if redis_call('HINCRBY', key, 'waiting', -1) <= 0 then redis_call('HDEL', key, 'first', 'waiting') end
  return { 'left' }
end

local function join(key, name, part)
  redis_call('HSET', key, 'part:' .. name, part)
  redis_call('HDEL', key, 'deferred:' .. name)
  redis_call('HSETNX', key, 'first', now)
  redis_call('HINCRBY', key, 'waiting', 1)
end

return function(tenant, channel, address, name, part, step, window_ms, lost_ms)
  local key = Key.day_message(tenant, channel, address)
  local facts = redis_call('HMGET', key, 'part:' .. name, 'taken:' .. name, 'ended:' .. name, 'deferred:' .. name)
  if facts[3] then return { 'ended', facts[3] } end
  if facts[4] and step ~= 'join' then return { 'ended', facts[4] } end
  if facts[2] then return { now - tonumber(facts[2]) > lost_ms and 'lost' or 'taken' } end
  if not facts[1] and step ~= 'join' then return { 'lost' } end
  if step == 'leave' then return leave(key, name) end
  if not facts[1] then join(key, name, part) end
  redis_call('PEXPIRE', key, KEPT_MS)
  local wait = tonumber(redis_call('HGET', key, 'first')) + window_ms - now
  if step == 'send' and wait <= 0 then return take_all(key) end
  return { 'gathers', math.max(0, wait) }
end
