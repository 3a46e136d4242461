-- repair_damaged: keep what was found in the place of a key aside for a month; the open recipients of a lost parcel become unknown
-- ARGV    name, kind, id
--         name, kind: the key, and the type that it should have; id: of the task, "" for another key
-- RETURNS one line for each change; none if nothing was wrong
-- EVENTS  outcomes, reported and finished for a parcel
-- INVARIANT I16; I18 what became of the recipients of a lost parcel is unknown

local KEPT_MS = 30 * DAY_MS

local function keep_aside(name, kind, id)
  local found, task = redis_call('TYPE', name).ok, id ~= '' and Record.peek(id)
  local is_unreadable = task and not task.state
  if found ~= kind and found ~= 'none' or is_unreadable then
    Damaged.set_aside(name)
    Repair.note('set aside as ' .. Key.damaged(name))
  end
  if redis_call('PTTL', Key.damaged(name)) == -1 then
    redis_call('PEXPIRE', Key.damaged(name), KEPT_MS)
    Repair.note('kept for 30 days')
  end
end

local function close_lost_parcel(id)
  local ns, sender, channel, n = string.match(id, '^(%d+)%.(.*)%.([^.]+)%.(%d+)$')
  if not ns then return end
  local suffix = sender .. ':' .. ns
  local facts = Damaged.read_hash(Key.history(suffix), 'state', 'parcel:' .. channel .. ':' .. n)
  if facts[1] ~= 'released' or not facts[2] then return end
  local task, items = { history = suffix, tube = channel }, {}
  for _, entry in ipairs(cjson.decode(facts[2])[2]) do
    local recipient, type_of_id = Unclear.recipient_in(entry, facts[2])
    items[#items + 1] = { recipient, type_of_id, entry[2], entry[3], entry[4], 'unknown', 'crashed', '', -1 }
  end
  local open = Unclear.only_open(id, task, Parcels.own_items(suffix, channel, tonumber(n), items), false)
  local closed = Outcome.record(suffix, channel, open)
  DeliveryEnd.close_entries(suffix, channel, closed)
  if closed > 0 then Repair.note(string.format('%.0f recipients unknown', closed)) end
end

return function(name, kind, id)
  keep_aside(name, kind, id)
  if id ~= '' and not Record.read(id) and #Repair.changes > 0 then
    local indexes = { due = Key.due(), lease = Key.lease(), expires = Key.expires(), buried = Key.buried(), finished = Key.finished() }
    for index, key in pairs(indexes) do Repair.leave_index(key, index, id) end
    close_lost_parcel(id)
  end
  return Repair.changes
end
