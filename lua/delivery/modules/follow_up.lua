-- follow_up: a delivery to those of another one who were not reached, or have not answered (D-50)
-- `leave_out` of its history is [[suffix, "unreached" or "unanswered", [number there of each recipient, -1 for none]], …]: of the delivery
-- that it follows, and of others whose success counts as well. All of them are in one shard, so the claim that gives a parcel to a courier
-- decides by what is true in that moment.

-- How long an entry waits whose recipient another delivery is sending to.
local UNDER_WAY_MS = 500

-- Returns why a recipient is left out, nil if it is not.
local function why_left_out(links, number)
  for _, link in ipairs(links) do
    local suffix, of, place = link[1], link[2], link[3][number + 1]
    if place >= 0 and of == 'unreached' and redis_call('GETBIT', Key.reached(suffix), place) == 1 then return 'reached_meanwhile' end
    if place >= 0 and of == 'unanswered' and Answers.has_answered(suffix, place) then return 'answered' end
  end
end

-- Adds the recipients of a parcel whose outcome is open, by number.
local function add_open(found, suffix, channel, n)
  local text = redis_call('HGET', Key.history(suffix), 'parcel:' .. channel .. ':' .. n)
  local items = {}
  for _, entry in ipairs(text and cjson.decode(text)[2] or {}) do
    items[#items + 1] = { recipient = Unclear.recipient_in(entry, text), number = entry[2], contact = entry[3] }
  end
  for place, stored in pairs(Outcome.stored_outcomes(suffix, channel, items)) do
    if OPEN[Outcome.status_in(stored)] then found[items[place].number] = true end
  end
end

-- Returns the recipients of a delivery whom a worker may be sending to at this moment, by number.
local function under_way_in(suffix)
  local found, facts = {}, redis_call('HMGET', Key.history(suffix), 'released', 'finished')
  if not facts[1] or facts[2] then return found end
  for _, channel_plan in ipairs(Plan.plan_of(suffix)) do
    for n = 0, #channel_plan.parcels - 1 do
      local task = Record.read(Plan.parcel_id(suffix, channel_plan.channel, n))
      if task and task.state == 'taken' then add_open(found, suffix, channel_plan.channel, n) end
    end
  end
  return found
end

-- Returns the rows of the checkpoint, one for each open entry.
local function rows_of(entries, checkpoint)
  if checkpoint ~= '' then return cjson.decode(checkpoint) end
  local rows = {}
  for place = 1, #entries do rows[place] = { place - 1, 0, 0, 0 } end
  return rows
end

-- Returns the items of the entries that nobody has attempted and whose recipients are left out.
local function left_out_items(task, rows, entries, encoded, links)
  local items, found = {}, {}
  for _, row in ipairs(rows) do
    local entry = entries[row[1] + 1]
    local why = row[3] == 0 and row[4] == 0 and why_left_out(links, entry[2])
    local recipient, kind = Unclear.recipient_in(entry, encoded)
    if why then items[#items + 1] = { recipient, kind, entry[2], entry[3], entry[4], 'skipped', why, '', -1 } end
  end
  for n, stored in pairs(Outcome.stored_outcomes(task.history, task.tube, Outcome.read_items(items))) do
    if Outcome.status_in(stored) == 'queued' then found[#found + 1] = items[n] end
  end
  return found
end

-- Returns the checkpoint in which those entries wait whose recipients another delivery is sending to: the next claim reads whether it has
-- reached them. Returns the one before if there are none.
local function with_waiting(id, rows, entries, links, checkpoint)
  local under_way, holds, parts = {}, false, {}
  for n, link in ipairs(links) do under_way[n] = link[2] == 'unreached' and under_way_in(link[1]) or {} end
  for place, row in ipairs(rows) do
    for n, link in ipairs(links) do
      if row[2] <= now and row[3] == 0 and row[4] == 0 and under_way[n][link[3][entries[row[1] + 1][2] + 1]] then
        row[2], holds = now + UNDER_WAY_MS, true
      end
    end
    parts[place] = string.format('[%.0f,%.0f,%.0f,%.0f]', row[1], row[2], row[3], row[4])
  end
  if not holds then return checkpoint end
  checkpoint = '[' .. table.concat(parts, ',') .. ']'
  redis_call('HSET', Key.progress(id), 'checkpoint', checkpoint)
  return checkpoint
end

-- Counts the people who are left out: each once, in however many channels, unless the delivery itself has reached it.
local function count_people(suffix, items)
  for _, item in ipairs(items) do
    local is_new = redis_call('HSETNX', Key.history(suffix), 'left_out:' .. item[3], item[7]) == 1
    if is_new and redis_call('GETBIT', Key.reached(suffix), item[3]) == 0 then redis_call('HINCRBY', Key.history(suffix), 'left_out', 1) end
  end
end

-- Skips the entries of a parcel that is being claimed whose recipients were reached, or have answered, meanwhile. A lost worker may have
-- attempted them, except in a channel that announces attempts. `started`: of the first claim that was lost, if one was. Returns whether
-- it skipped some, and the checkpoint with which the worker goes on.
function FollowUp.leave_out(id, task, encoded, leave_out, checkpoint, started)
  if started and not Task.option(task.tube, 'announces') then return false, checkpoint end
  local entries, links = cjson.decode(encoded)[2], cjson.decode(leave_out)
  local rows = rows_of(entries, checkpoint)
  local items = left_out_items(task, rows, entries, encoded, links)
  checkpoint = with_waiting(id, rows, entries, links, checkpoint)
  if #items == 0 then return false, checkpoint end
  count_people(task.history, items)
  redis_call('HSET', Key.history(task.history), 'closed', 1)
  Parcels.record_known(task.history, task.tube, tonumber(string.match(id, '(%d+)$')), items)
  return true, checkpoint
end

-- Links a new delivery to the one that it follows: a line `of suffix` for each.
function FollowUp.link(parent, of, suffix)
  local history = Key.history(parent)
  if redis_call('EXISTS', history) == 0 then return end
  local known = redis_call('HGET', history, 'followed')
  redis_call('HSET', history, 'followed', (known and known .. '\n' or '') .. of .. ' ' .. suffix)
end
