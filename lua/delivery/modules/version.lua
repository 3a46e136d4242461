-- version: numbers the changes of a history
-- A promotion may lose the last changes of a history, which callers have seen under their numbers. Each epoch of the server therefore
-- numbers from its own million on, so no number stands for two changes.

local SPAN = 1000000

-- What this call has read.
local lowest
local function lowest_version()
  if not lowest then lowest = tonumber(redis_call('HGET', Key.primary(), 'epoch') or '0') * SPAN end
  return lowest
end

-- Returns the number behind which the next changes of a history are numbered. `stored`: its version, false if it has none.
function Version.of(stored) return math.max(tonumber(stored or '0'), lowest_version()) end

-- Numbers one more change of a history. Returns its number.
function Version.raise(suffix)
  local version = redis_call('HINCRBY', Key.history(suffix), 'version', 1)
  if version > lowest_version() then return version end
  redis_call('HSET', Key.history(suffix), 'version', lowest_version() + 1)
  return lowest_version() + 1
end

-- A new call reads the epoch again.
function Version.begin()
  lowest = nil
end
