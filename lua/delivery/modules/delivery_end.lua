-- delivery_end: counts the open entries of a delivery and ends it with the last one

-- Returns whether a recipient was tried without success: a delivery of which another part was cancelled or has expired was not only that.
-- An entry that still is `sending` is `unknown` now.
local function has_failures(suffix)
  for _, channel in ipairs(Plan.channels_of(suffix)) do
    local prefix = 'n:' .. channel .. ':'
    for _, n in ipairs(redis_call('HMGET', Key.history(suffix), prefix .. 'failed', prefix .. 'unknown', prefix .. 'sending')) do
      if (tonumber(n) or 0) > 0 then return true end
    end
  end
  return false
end

local function final_state(suffix, state)
  if state == 'cancelled' or state == 'expired' then return state end
  local facts = redis_call('HMGET', Key.history(suffix), 'reached', 'lapsed', 'withdrawn')
  if (tonumber(facts[1]) or 0) > 0 or has_failures(suffix) then return 'finished' end
  if facts[2] then return 'expired' end
  return facts[3] and 'cancelled' or 'finished'
end

-- How long an ended delivery is kept, in ms: one that asks as long as answers are.
function DeliveryEnd.retention_ms(asks)
  local kept = redis_call('HMGET', Key.settings(), 'retention_ms', 'answers_ms')
  return tonumber(asks and kept[2] or kept[1] or 30 * DAY_MS)
end

-- Lets the retention of an ended delivery start now, when its question closes, or with its next reminder.
function DeliveryEnd.retain(suffix)
  local history = Key.history(suffix)
  local facts = redis_call('HMGET', history, 'tenant', 'answers_code', 'answers_until', 'answers_remind_at', 'answers_closed')
  local from = facts[5] and now or math.max(now, tonumber(facts[3] or 0), tonumber(facts[4] or 0))
  local drop_at = from + DeliveryEnd.retention_ms(facts[2])
  redis_call('ZADD', Key.retained(), drop_at, facts[1] .. '|' .. suffix)
  -- If no claim runs any more, the server drops the keys by itself a day later.
  for _, key in ipairs({ history, Key.outcomes(suffix), Key.reached(suffix) }) do redis_call('PEXPIRE', key, drop_at + DAY_MS - now) end
  if facts[2] then redis_call('PEXPIRE', Key.asked(facts[2]), drop_at + DAY_MS - now) end
end

-- Ends a delivery: every channel has reported.
function DeliveryEnd.finish_history(suffix)
  local history = Key.history(suffix)
  local facts = redis_call('HMGET', history, 'state', 'tenant')
  redis_call('HSET', history, 'state', final_state(suffix, facts[1]), 'finished', now)
  Version.raise(suffix)
  redis_call('ZREM', Key.live(facts[2]), suffix)
  redis_call('ZREM', Key.due(), Plan.order_member(suffix))
  redis_call('DEL', Key.order(suffix))
  DeliveryEnd.retain(suffix)
  Outcome.announce(suffix, 'finished')
end

-- Marks a whole delivery as cancelled. Its parcels, if it has any, end by themselves.
function DeliveryEnd.withdraw(suffix)
  redis_call('HSET', Key.history(suffix), 'state', 'cancelled', 'withdrawn', 1)
  Version.raise(suffix)
  Outcome.announce(suffix, 'cancelled')
end

-- Closes `n` entries of a channel. With its last entry the channel has reported; with the last channel the delivery is finished.
function DeliveryEnd.close_entries(suffix, channel, n)
  if n == 0 or Plan.is_reminder(channel) then return end
  local history = Key.history(suffix)
  if redis_call('HINCRBY', history, 'left:' .. channel, -n) > 0 then return end
  local reported = redis_call('HINCRBY', history, 'reported', 1)
  -- Each report is announced, not only the last: a tracker may wait for this number of channels (D-15).
  if reported >= #Plan.channels_of(suffix) then DeliveryEnd.finish_history(suffix) else Outcome.announce(suffix, 'reported') end
end
