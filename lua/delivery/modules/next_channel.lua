-- next_channel: the strategy `first` (D-36, docs/decisions/0041): which entries of a later channel are attempted or skipped, and which wait
-- The checkpoint of a later channel's parcel has a row for each open entry; while its `not before` is AWAITING_MS, an entry awaits the
-- earlier channels and was never attempted. The parcels with one number have the same recipients in all channels, so one tick decides
-- for a parcel.

-- Entries that one decision writes; the next tick goes on.
local MOST = 500

-- Returns the rows of the checkpoint. Before the first decision all entries await the earlier ones.
local function rows_of(id, entries)
  local checkpoint = redis_call('HGET', Key.progress(id), 'checkpoint')
  if checkpoint and checkpoint ~= '' then return cjson.decode(checkpoint) end
  local rows = {}
  for place = 1, #entries do rows[place] = { place - 1, AWAITING_MS, 0, 0 } end
  return rows
end

-- Returns the outcomes of these recipients (true by number) in one channel: number → {status → true, at = ms of the last, is_open}. An
-- open entry whose parcel was ended by an operator is not open any more.
local function outcomes_in(suffix, channel, n, wanted)
  local text = redis_call('HGET', Key.history(suffix), 'parcel:' .. channel .. ':' .. n)
  local is_alive = Record.read(Plan.parcel_id(suffix, channel, n)) ~= nil
  local items, found = {}, {}
  for _, entry in ipairs(cjson.decode(text)[2]) do
    if wanted[entry[2]] then
      items[#items + 1] = { recipient = Unclear.recipient_in(entry, text), number = entry[2], contact = entry[3] }
    end
  end
  for n_th, stored in ipairs(Outcome.stored_outcomes(suffix, channel, items)) do
    local one, status = found[items[n_th].number] or { at = 0 }, Outcome.status_in(stored)
    found[items[n_th].number] = one
    one[status] = true
    one.is_open = one.is_open or OPEN[status] and is_alive
    if stored then one.at = math.max(one.at, tonumber(string.match(stored, '^[^|]*|[^|]*|(%d+)'))) end
  end
  return found
end

-- What one earlier channel means for a recipient: `skip` and a reason, `hold` and until which ms (nil: until an outcome changes), or `go`
-- and a reason. Without a wait `sent` is enough, and after `unknown` no other channel is tried, because it may have arrived (D-38).
local function meaning_of(one, wait)
  if one.delivered or one.read then return 'skip', 'reached_elsewhere' end
  if one.sent and not wait then return 'skip', 'reached_elsewhere' end
  if one.is_open then return 'hold' end
  if one.unknown and not wait then return 'skip', 'unknown_elsewhere' end
  if one.sent or one.unknown then
    if one.at + wait > now then return 'hold', one.at + wait end
    return 'go', 'no_receipt'
  end
  if one.skipped then return 'go' end
  return 'go', 'failed_elsewhere'
end

-- Returns what all earlier channels together mean for one recipient: a skip decides, then a hold.
local function step_of(number, earlier, wait)
  local step, detail = 'go', nil
  for _, outcomes in ipairs(earlier) do
    local one = outcomes[number]
    local next_step, next_detail
    if one then next_step, next_detail = meaning_of(one, wait) end
    if next_step == 'skip' then return next_step, next_detail end
    if next_step == 'hold' then
      detail = math.max(step == 'hold' and detail or 0, next_detail or now + DAY_MS)
      step = 'hold'
    elseif step == 'go' and next_detail then
      detail = next_detail
    end
  end
  return step, detail
end

local function earlier_outcomes(suffix, channel, n, wanted)
  local earlier = {}
  for _, other in ipairs(Plan.channels_of(suffix)) do
    if other == channel then return earlier end
    earlier[#earlier + 1] = outcomes_in(suffix, other, n, wanted)
  end
end

-- Returns the awaiting entries that are still open, as items with their row, their recipients, and the other rows.
local function awaiting_entries(id, task, entries, text)
  local awaiting, wanted, rows = {}, {}, {}
  for _, row in ipairs(rows_of(id, entries)) do
    local entry = entries[row[1] + 1]
    if row[2] == AWAITING_MS then
      local recipient, kind = Unclear.recipient_in(entry, text)
      awaiting[#awaiting + 1] = { recipient, kind, entry[2], entry[3], entry[4], 'queued', '', '', -1, row = row }
      wanted[entry[2]] = true
    else
      rows[#rows + 1] = row
    end
  end
  local own = Parcels.own_items(task.history, task.tube, tonumber(string.match(id, '(%d+)$')), awaiting)
  return Unclear.only_open(id, task, own, false), wanted, rows
end

-- Moves the awaiting entries whose step has come. Returns the skipped and the switched items, and when the next step may come.
local function take_steps(awaiting, earlier, wait, rows)
  local skipped, switched, taken, due = {}, {}, 0, now + DAY_MS
  for _, item in ipairs(awaiting) do
    local row = item.row
    local step, detail = step_of(item[3], earlier, wait)
    if step == 'hold' then
      due = math.min(due, detail)
    elseif taken == MOST then
      step, due = 'hold', now
    else
      taken = taken + 1
    end
    if step == 'skip' then
      item[6], item[7] = 'skipped', detail
      skipped[#skipped + 1] = item
    else
      if step == 'go' then row[2] = 0 end
      if step == 'go' and detail then
        item[7] = detail
        switched[#switched + 1] = item
      end
      rows[#rows + 1] = row
    end
  end
  return skipped, switched, due
end

local function save_rows(id, rows)
  local parts = {}
  for n, row in ipairs(rows) do parts[n] = string.format('[%.0f,%.0f,%.0f,%.0f]', row[1], row[2], row[3], row[4]) end
  redis_call('HSET', Key.progress(id), 'checkpoint', '[' .. table.concat(parts, ',') .. ']')
end

-- Makes the parcel takeable, or lets it wait. While all its entries await it leaves its lane: it would block the deliveries behind it.
local function place_again(id, task, rows, due)
  local first = AWAITING_MS
  for _, row in ipairs(rows) do first = math.min(first, row[2]) end
  local is_head = task.lane and Lane.head_of(task.tube, task.lane) == id
  if first <= now then
    if task.lane and not is_head then task.order = Counts.next_order() end
    return Task.give_back(id, task)
  end
  if first == AWAITING_MS and is_head then Lane.leave_lane(id, task) end
  due = math.min(due, first)
  task.due = due
  Record.save(id, task)
  Timers.await_moment(due, id)
end

-- Decides for a parcel of a later channel that is due. Returns how much work it was, in parcels released.
function NextChannel.decide_next(id, task)
  local suffix, channel, n = task.history, task.tube, string.match(id, '(%d+)$')
  redis_call('ZREM', Key.due(), id)
  local facts = redis_call('HMGET', Key.history(suffix), 'parcel:' .. channel .. ':' .. n, 'wait')
  local entries = cjson.decode(facts[1])[2]
  local awaiting, wanted, rows = awaiting_entries(id, task, entries, facts[1])
  local earlier = earlier_outcomes(suffix, channel, n, wanted)
  local skipped, switched, due = take_steps(awaiting, earlier, tonumber(facts[2] or nil), rows)
  Outcome.record(suffix, channel, switched, true)
  local closed = Outcome.record(suffix, channel, skipped)
  task.left = redis_call('HINCRBY', Key.progress(id), 'left', 0 - closed)
  DeliveryEnd.close_entries(suffix, channel, closed)
  if task.left <= 0 then
    Task.finish(id, task, 'done')
  else
    save_rows(id, rows)
    place_again(id, task, rows, due)
  end
  return 1 + math.floor(#entries / 4)
end
