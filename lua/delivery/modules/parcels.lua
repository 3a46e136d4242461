-- parcels: the parts of a delivery for one channel, as tasks

-- A parcel of a delivery with the strategy `first` contains the place of its channel, from 1. From the second on it waits: the next tick
-- decides which of its entries are attempted (next_channel.lua).
local function place_parcel(id, task, place)
  task.place = place
  if place == 1 then return end
  task.due = now
  Task.turn_to(task, 'waiting')
  Timers.await_moment(now, id)
end

-- Stores a parcel as a task. `label`: its channel, or that of a reminder. `place`: that of its channel in the delivery, from 1. `due`: when
-- a parcel that asks again is sent, nil for at once. `due` may be left out.
function Parcels.add_parcel(suffix, facts, label, n, size, place, due)
  local id, channel = Plan.parcel_id(suffix, label, n), Plan.channel_of(label)
  local task = {
    tube = channel, tenant = facts.tenant, lane = facts.lane, priority = facts.priority, order = Counts.next_order(), state = 'ready',
    expires = facts.expires and tonumber(facts.expires), history = suffix,
  }
  if task.expires then Timers.await_expiry(task.expires, id) end
  Counts.count(channel, 'put')
  Counts.tally(channel, 'ready', 1)
  if Reminders.asks_again(facts, label) then
    task.place, task.due = ASKS_AGAIN, due
    if due then
      Task.turn_to(task, 'waiting')
      Timers.await_moment(due, id)
    end
  elseif facts.strategy == 'first' then
    place_parcel(id, task, place)
  end
  Record.save(id, task)
  redis_call('HSET', Key.progress(id), 'left', size)
  if task.state == 'ready' then Lane.make_takeable(id, task) end
end

function Parcels.facts_of(suffix)
  local facts = Damaged.read_hash(Key.history(suffix), 'tenant', 'lane', 'priority', 'expires', 'state', 'strategy', 'answer')
  return {
    tenant = facts[1], lane = facts[2], priority = tonumber(facts[3] or '5'), expires = facts[4], state = facts[5], strategy = facts[6],
    question = facts[7] and cjson.decode(facts[7]),
  }
end

-- Writes the number of open entries of each channel. Until a delivery is released only its plan has these numbers.
function Parcels.open_channels(suffix, plan)
  local reported = 0
  for _, channel_plan in ipairs(plan) do
    local entries = 0
    for _, size in ipairs(channel_plan.parcels) do entries = entries + size end
    if entries > 0 then redis_call('HSETNX', Key.history(suffix), 'left:' .. channel_plan.channel, entries) else reported = reported + 1 end
  end
  redis_call('HSETNX', Key.history(suffix), 'reported', reported)
end

-- Releases a due delivery: the order key vanishes, each channel gets its parcels. A channel in which no recipient has a contact has
-- reported by that (D-12). Returns the number of tasks made.
function Parcels.release_delivery(suffix)
  local history, facts, plan = Key.history(suffix), Parcels.facts_of(suffix), Plan.plan_of(suffix)
  redis_call('DEL', Key.order(suffix))
  if facts.state ~= 'scheduled' then return 0 end
  redis_call('HSET', history, 'state', 'released', 'released', now)
  Parcels.open_channels(suffix, plan)
  Version.raise(suffix)
  Outcome.announce(suffix, 'released')
  Reminders.plan_first(suffix, facts)
  Waves.begin(suffix, facts)
  local made, escalated = 0, Reminders.escalation_due(facts)
  for place, channel_plan in ipairs(plan) do
    for n, size in ipairs(channel_plan.parcels) do
      if size > 0 then
        Parcels.add_parcel(suffix, facts, channel_plan.channel, n - 1, size, place, escalated or Waves.due_of(suffix, facts, n - 1))
        made = made + 1
      end
    end
  end
  if tonumber(redis_call('HGET', history, 'reported')) >= #plan then DeliveryEnd.finish_history(suffix) end
  return made
end

-- Returns the entries of a parcel that a person has retried, as `number:contact` → their latest parcel. A parcel's text is
-- `[group, [[id, number, contact, …], …]]`.
local function moved_entries(suffix, channel, n)
  local history, moved = Key.history(suffix), {}
  local first = redis_call('HGET', history, 'retried:' .. channel)
  if not first then return moved end
  n = math.max(tonumber(first), n + 1)
  local blob = redis_call('HGET', history, 'parcel:' .. channel .. ':' .. n)
  while blob do
    for _, entry in ipairs(cjson.decode(blob)[2]) do moved[entry[2] .. ':' .. entry[3]] = n end
    n = n + 1
    blob = redis_call('HGET', history, 'parcel:' .. channel .. ':' .. n)
  end
  return moved
end

-- Returns the parcel of an entry's latest attempt: a retry by a person puts the entry into a later parcel.
function Parcels.latest_parcel(suffix, channel, n, item)
  return moved_entries(suffix, channel, n)[item[3] .. ':' .. item[4]] or n
end

-- Returns the items that still belong to this parcel. An entry retried by a person belongs to a later parcel: an outcome that this
-- parcel's courier still writes for it closes nothing here.
function Parcels.own_items(suffix, channel, n, items)
  local moved, own = moved_entries(suffix, channel, n), {}
  if not next(moved) then return items end
  for _, item in ipairs(items) do
    if not moved[item[3] .. ':' .. item[4]] then own[#own + 1] = item end
  end
  return own
end

-- An outcome of this channel has changed, in a delivery with the strategy `first`. Its later channels have the same recipients in the
-- parcel with the same number: where that one waits, the next tick decides again.
function Parcels.wake_later(suffix, channel, n)
  local is_later = false
  for _, other in ipairs(Plan.channels_of(suffix)) do
    local id = Plan.parcel_id(suffix, other, n)
    local task = is_later and Record.read(id)
    if task and task.state == 'waiting' and (task.place or 0) > 1 then
      task.due = now
      Record.save(id, task)
      Timers.await_moment(now, id)
    end
    is_later = is_later or other == channel
  end
end

-- Records outcomes of entries of a parcel without its lease: from a report, or from a worker that has lost it. A report may come before
-- the parcel's own worker has recorded the entry: then the parcel has fewer entries left to do. If the parcel has ended (cancelled,
-- expired), its entries have ended with it. Returns whether the history changed.
function Parcels.record_known(suffix, channel, n, items)
  local before = redis_call('HMGET', Key.history(suffix), 'version', 'strategy')
  local closed, id = Outcome.record(suffix, channel, items), Plan.parcel_id(suffix, channel, n)
  if closed ~= 0 and redis_call('EXISTS', Key.task(id)) == 1 then
    redis_call('HINCRBY', Key.progress(id), 'left', 0 - closed)
    DeliveryEnd.close_entries(suffix, channel, closed)
  end
  if redis_call('HGET', Key.history(suffix), 'version') == before[1] then return false end
  if before[2] then Parcels.wake_later(suffix, channel, n) end
  return true
end

-- Closes entries of a parcel (0 - n, because Redis does not take Lua's -0 for a number).
function Parcels.close_items(id, task, items)
  local label = Plan.label_in(id)
  items = Parcels.own_items(task.history, label, tonumber(string.match(id, '(%d+)$')), items)
  local closed = Outcome.record(task.history, label, items)
  task.left = redis_call('HINCRBY', Key.progress(id), 'left', 0 - closed)
  DeliveryEnd.close_entries(task.history, label, closed)
  if task.place and closed ~= 0 then Parcels.wake_later(task.history, task.tube, string.match(id, '(%d+)$')) end
end

-- Returns whether this call may still close unclear entries. If not, it leaves further parcels to the next call.
function Parcels.may_close() return Parcels.closable > 0 end

-- Ends the entries that may have been sent.
function Parcels.close_unclear(id, task)
  local items = Unclear.unclear_items(id, task)
  if #items == 0 then return end
  Parcels.closable = Parcels.closable - #items
  Parcels.close_items(id, task, items)
end

-- Ends a parcel that will not be attempted any more, with its open entries.
function Parcels.close_parcel(id, task, final)
  Parcels.close_unclear(id, task)
  Task.finish(id, task, final)
  Outcome.count_derived(task.tube, final, task.left)
  DeliveryEnd.close_entries(task.history, Plan.label_in(id), task.left)
  if task.place then Parcels.wake_later(task.history, task.tube, string.match(id, '(%d+)$')) end
end

-- Closes recipients that were cancelled while their parcel was taken and that it did not send to: they are not retried (I11).
function Parcels.close_skipped(id, task)
  local skipped = redis_call('HGET', Key.progress(id), 'skipped')
  if not skipped then return end
  local items = {}
  for line in string.gmatch(skipped, '[^\n]+') do items[#items + 1] = Unclear.cancelled_item(id, task, cjson.decode(line)) end
  redis_call('HDEL', Key.progress(id), 'skip', 'skipped')
  Parcels.close_items(id, task, items)
end

-- The number of unclear entries that one call may close.
function Parcels.begin()
  Parcels.closable = 500
end
