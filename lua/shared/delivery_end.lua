-- delivery_end: counts the open entries of a delivery and ends it with the last one
-- USES    plan, outcome

local function final_state(suffix, state)
  if state == 'cancelled' or state == 'expired' then return state end
  local facts = redis.call('HMGET', history_key(suffix), 'reached', 'lapsed', 'withdrawn')
  if (tonumber(facts[1]) or 0) > 0 then return 'finished' end
  if facts[2] then return 'expired' end
  return facts[3] and 'cancelled' or 'finished'
end

-- Ends a delivery: every channel has reported. Its retention starts now.
local function finish_history(suffix)
  local history = history_key(suffix)
  local facts = redis.call('HMGET', history, 'state', 'tenant')
  redis.call('HSET', history, 'state', final_state(suffix, facts[1]), 'finished', now)
  redis.call('HINCRBY', history, 'version', 1)
  redis.call('ZREM', live_key(facts[2]), suffix)
  redis.call('ZREM', due_key(), order_member(suffix))
  redis.call('DEL', order_key(suffix))
  local drop_at = now + tonumber(redis.call('HGET', settings_key(), 'retention_ms') or 30 * DAY_MS)
  redis.call('ZADD', retained_key(), drop_at, facts[2] .. '|' .. suffix)
  -- If no claim runs any more, the server drops the keys by itself a day later.
  for _, key in ipairs({ history, outcomes_key(suffix), reached_key(suffix) }) do redis.call('PEXPIREAT', key, drop_at + DAY_MS) end
  announce(suffix, 'finished')
end

-- Marks a whole delivery as cancelled. Its parcels, if it has any, end by themselves.
local function withdraw(suffix)
  redis.call('HSET', history_key(suffix), 'state', 'cancelled', 'withdrawn', 1)
  redis.call('HINCRBY', history_key(suffix), 'version', 1)
  announce(suffix, 'cancelled')
end

-- Closes `n` entries of a channel. With its last entry the channel has reported; with the last channel the delivery is finished.
local function close_entries(suffix, channel, n)
  if n == 0 then return end
  local history = history_key(suffix)
  if redis.call('HINCRBY', history, 'left:' .. channel, -n) > 0 then return end
  local reported = redis.call('HINCRBY', history, 'reported', 1)
  -- Each report is announced, not only the last: a tracker may wait for this number of channels (D-15).
  if reported >= #channels_of(suffix) then finish_history(suffix) else announce(suffix, 'reported') end
end
