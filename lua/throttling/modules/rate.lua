-- rate: the rate at which a provider accepts the calls of an account, as learned so far (docs/decisions/0030)
-- `rate`: calls per second from now on. `limit`: the rate refused last. `next`: the ms of the next free call. Calls are counted by the
-- second: `calls` in `second`, `before` in the one before it.

Rate.RATE_KEPT_MS = 3600000

function Rate.read_rate(key)
  local facts = redis_call('HMGET', key, 'rate', 'limit', 'next', 'second', 'calls', 'before')
  return {
    rate = facts[1] and tonumber(facts[1]), limit = facts[2] and tonumber(facts[2]), next = tonumber(facts[3] or '0'),
    second = tonumber(facts[4] or '0'), calls = tonumber(facts[5] or '0'), before = tonumber(facts[6] or '0'),
  }
end

local function calls_by_second(known)
  local second = math.floor(now / 1000)
  if known.second == second then return second, known.calls, known.before end
  return second, 0, known.second == second - 1 and known.calls or 0
end

-- Returns the number of calls in the second that ends now, from the two seconds of the clock that it touches.
function Rate.calls_of_last_second(known)
  local _, calls, before = calls_by_second(known)
  return calls + before * (1 - now % 1000 / 1000)
end

-- Returns the fields of the counters after one more call.
function Rate.counted_call(known)
  local second, calls, before = calls_by_second(known)
  return { 'second', second, 'calls', calls + 1, 'before', before }
end
