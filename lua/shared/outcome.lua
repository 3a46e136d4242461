-- outcome: what became of recipients, kept in the history, and what follows from it
-- A stored outcome is `status|reason|at ms|version|attempts|reference`. What was never stored is `queued` while its channel is open,
-- and shares the end of the delivery (cancelled, expired) after.

-- The same table as core/model/states.py RANK; a test holds them together.
local RANK = {
  queued = 0, sending = 1, no_contact = 2, skipped = 2, cancelled = 2, expired = 2, unknown = 3, sent = 4, failed = 5,
  delivered = 6, read = 7,
}
local REACHED = { sent = true, delivered = true, read = true }
local OPEN = { queued = true, sending = true }
local BEST = { 'read', 'delivered', 'sent', 'sending', 'queued', 'unknown' }

local DAY_MS = 86400000
-- The stream is bounded in entries, and, as one entry may tell of thousands of outcomes, large ones leave after a minute.
local EVENTS_KEPT = 20000
local LARGE = 10000

local function status_in(value) return value and string.match(value, '^([^|]*)') or 'queued' end

local function attempts_in(value)
  return value and tonumber(string.match(value, '^[^|]*|[^|]*|[^|]*|[^|]*|([^|]*)')) or 0
end

local function field_of(recipient, channel, contact)
  if contact == 0 then return recipient .. ':' .. channel end
  return recipient .. ':' .. channel .. ':' .. contact
end

local function supersedes(new, old) return RANK[new] > RANK[old] or (old == 'sending' and new == 'queued') end

-- One status for a recipient with several contacts in one channel (core/model/states.py `best`).
local function best(statuses)
  for _, wanted in ipairs(BEST) do
    for _, status in ipairs(statuses) do
      if status == wanted then return status end
    end
  end
  return statuses[1]
end

-- `plan`: "telegram 90 100,57;sms 3;vk 0": channel, recipients with a contact, entries of each parcel; these are left out where
-- there is one parcel, with an entry for each recipient.
local function channels_of(suffix)
  local found = {}
  for channel in string.gmatch(redis.call('HGET', history_key(suffix), 'plan') or '', '([^ ;]+) %d+') do found[#found + 1] = channel end
  return found
end

local function plan_of(suffix)
  local plan = {}
  for channel, people, sizes in string.gmatch(redis.call('HGET', history_key(suffix), 'plan') or '', '([^ ;]+) (%d+) ?([%d,]*)') do
    if sizes == '' and people ~= '0' then sizes = people end
    local parcels = {}
    for size in string.gmatch(sizes, '%d+') do parcels[#parcels + 1] = tonumber(size) end
    plan[#plan + 1] = { channel = channel, people = people, parcels = parcels }
  end
  return plan
end

local function save_plan(suffix, plan)
  local parts = {}
  for _, leg in ipairs(plan) do parts[#parts + 1] = leg.channel .. ' ' .. leg.people .. ' ' .. table.concat(leg.parcels, ',') end
  redis.call('HSET', history_key(suffix), 'plan', table.concat(parts, ';'))
end

-- `42:1763712000000000000` → sender, ns. In ids the time comes first, so that they sort by it.
local function split_suffix(suffix) return string.match(suffix, '^(.*):(%d+)$') end

local function parcel_id(suffix, channel, n)
  local sender, ns = split_suffix(suffix)
  return ns .. '.' .. sender .. '.' .. channel .. '.' .. n
end

local function order_member(suffix)
  local sender, ns = split_suffix(suffix)
  return 'order:' .. ns .. ':' .. sender
end

-- One entry in the stream for each step, however many outcomes it carries (I13).
local function announce(suffix, event, changes)
  local facts = redis.call('HMGET', history_key(suffix), 'state', 'version', 'reported', 'finished')
  redis.call('XADD', events_key(), 'MAXLEN', '~', EVENTS_KEPT, '*', 'history', suffix, 'event', event, 'state', facts[1],
    'version', facts[2] or '0', 'reported', facts[3] or '0', 'finished', facts[4] and '1' or '0', 'changes', changes or '')
  if changes and #changes > LARGE then
    redis.call('XTRIM', events_key(), 'MINID', '~', string.format('%.0f', clock[1] * 1000 - 60000))
  end
end

local function final_state(suffix, state)
  if state == 'cancelled' or state == 'expired' then return state end
  local facts = redis.call('HMGET', history_key(suffix), 'reached', 'lapsed', 'withdrawn')
  if (tonumber(facts[1]) or 0) > 0 then return 'finished' end
  if facts[2] then return 'expired' end
  return facts[3] and 'cancelled' or 'finished'
end

-- The end of a delivery: every channel has reported. From here on its retention runs.
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
  -- A second chance, should nothing tick any more: the server drops them by itself a day later.
  for _, key in ipairs({ history, outcomes_key(suffix), reached_key(suffix) }) do redis.call('PEXPIREAT', key, drop_at + DAY_MS) end
  announce(suffix, 'finished')
end

-- `n` entries of a channel are closed; with the last one the channel has reported, with the last channel the delivery is finished.
local function close_entries(suffix, channel, n)
  if n == 0 then return end
  local history = history_key(suffix)
  if redis.call('HINCRBY', history, 'left:' .. channel, -n) > 0 then return end
  local reported = redis.call('HINCRBY', history, 'reported', 1)
  -- Who waits for this many reports is told, also when it is not the last one (D-15).
  if reported >= #channels_of(suffix) then finish_history(suffix) else announce(suffix, 'reported') end
end

local function merged_status(suffix, recipient, channel, contacts, instead)
  local statuses = {}
  for contact = 0, contacts - 1 do
    local field = field_of(recipient, channel, contact)
    statuses[#statuses + 1] = instead[field] or status_in(redis.call('HGET', outcomes_key(suffix), field))
  end
  return best(statuses)
end

-- Whether a recipient was reached in another channel; needed only when a report takes a `sent` back.
local function reached_elsewhere(suffix, recipient, channel)
  for _, other in ipairs(channels_of(suffix)) do
    local contact, value = 0, nil
    repeat
      value = other ~= channel and redis.call('HGET', outcomes_key(suffix), field_of(recipient, other, contact))
      if value and REACHED[status_in(value)] then return true end
      contact = contact + 1
    until not value
  end
  return false
end

-- Returns by how much the number of people reached changes.
local function mark_reached(suffix, item, channel, old, new)
  if REACHED[new] and not REACHED[old] then
    return 1 - redis.call('SETBIT', reached_key(suffix), item.number, 1)
  elseif REACHED[old] and not REACHED[new] and not reached_elsewhere(suffix, item.recipient, channel) then
    return -redis.call('SETBIT', reached_key(suffix), item.number, 0)
  end
  return 0
end

-- items: [[recipient, "i"|"s" (type of its id), number, contact, contacts, status, reason, reference, attempts], …]
local function read_items(items)
  local read = {}
  for n, item in ipairs(items) do
    read[n] = {
      recipient = item[1], type = item[2], number = item[3], contact = item[4], contacts = item[5], status = item[6],
      reason = item[7], reference = item[8], attempts = item[9],
    }
  end
  return read
end

local function stored_outcomes(suffix, channel, items)
  local stored = {}
  for from = 1, #items, 1000 do
    local fields = {}
    for n = from, math.min(from + 999, #items) do fields[#fields + 1] = field_of(items[n].recipient, channel, items[n].contact) end
    for n, value in ipairs(redis.call('HMGET', outcomes_key(suffix), unpack(fields))) do stored[from + n - 1] = value end
  end
  return stored
end

local function store_outcomes(suffix, fields)
  for from = 1, #fields, 1000 do
    redis.call('HSET', outcomes_key(suffix), unpack(fields, from, math.min(from + 999, #fields)))
  end
end

-- A report may come when the delivery is over and be the first that was ever written of it: what it wrote has the same end (I16).
local function end_with_history(suffix)
  local ends_in = redis.call('PTTL', history_key(suffix))
  if ends_in < 0 then return end
  for _, key in ipairs({ outcomes_key(suffix), reached_key(suffix) }) do redis.call('PEXPIRE', key, ends_in) end
end

-- Write outcomes, keep the counters, tell the stream. Returns how many entries were closed (less those opened again).
-- `forced`: a retry asked for by a person, the one case in which a later rank gives way to an earlier.
local function record(suffix, channel, raw_items, forced)
  local history = history_key(suffix)
  if #raw_items == 0 or redis.call('EXISTS', history) == 0 then return 0 end
  local items = read_items(raw_items)
  local stored = stored_outcomes(suffix, channel, items)
  local version = tonumber(redis.call('HGET', history, 'version') or '0')
  local fields, changes, written, by_status, closed, reached = {}, {}, {}, {}, 0, 0
  for n, item in ipairs(items) do
    local field = field_of(item.recipient, channel, item.contact)
    local old, new = written[field] or status_in(stored[n]), item.status
    if forced or supersedes(new, old) then
      local old_merged, new_merged = old, new
      if item.contacts > 1 then old_merged = merged_status(suffix, item.recipient, channel, item.contacts, written) end
      written[field] = new
      if item.contacts > 1 then new_merged = merged_status(suffix, item.recipient, channel, item.contacts, written) end
      version = version + 1
      local attempts = item.attempts >= 0 and item.attempts or attempts_in(stored[n])
      local value = new .. '|' .. item.reason .. '|' .. string.format('%.0f|%.0f|%.0f|', now, version, attempts) .. item.reference
      fields[#fields + 1] = field
      fields[#fields + 1] = value
      changes[#changes + 1] = item.type .. item.recipient .. '\t' .. channel .. '\t' .. value
      if OPEN[old] and not OPEN[new] then closed = closed + 1 elseif OPEN[new] and not OPEN[old] then closed = closed - 1 end
      if old_merged ~= new_merged then
        by_status[old_merged] = (by_status[old_merged] or 0) - 1
        by_status[new_merged] = (by_status[new_merged] or 0) + 1
        reached = reached + mark_reached(suffix, item, channel, old_merged, new_merged)
      end
    end
  end
  if #changes == 0 then return 0 end
  store_outcomes(suffix, fields)
  if reached ~= 0 then redis.call('HINCRBY', history, 'reached', reached) end
  end_with_history(suffix)
  by_status.queued = nil
  for status, n in pairs(by_status) do
    if n ~= 0 then redis.call('HINCRBY', history, 'n:' .. channel .. ':' .. status, n) end
  end
  redis.call('HSET', history, 'version', version)
  announce(suffix, 'outcomes', table.concat(changes, '\n'))
  return closed
end
