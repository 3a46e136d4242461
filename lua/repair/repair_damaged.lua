-- repair_damaged: keep what was found in the place of a key aside for a month; the open recipients of a lost parcel become unknown
-- ARGV    name, kind, id
--         name, kind: the key, and the type that it should have; id: of the task, "" for another key
-- USES    damaged, outcome, unclear, parcels, delivery_end, repair
-- RETURNS one line for each change; none if nothing was wrong
-- EVENTS  outcomes, reported and finished for a parcel
-- INVARIANT I16; I18 what became of the recipients of a lost parcel is unknown

local KEPT_MS = 30 * DAY_MS

local function keep_aside()
  local found = redis.call('TYPE', name).ok
  if found ~= kind and found ~= 'none' then
    set_aside(name)
    note('set aside as ' .. damaged_key(name))
  end
  if redis.call('PTTL', damaged_key(name)) == -1 then
    redis.call('PEXPIRE', damaged_key(name), KEPT_MS)
    note('kept for 30 days')
  end
end

local function close_lost_parcel()
  local ns, sender, channel, n = string.match(id, '^(%d+)%.(.*)%.([^.]+)%.(%d+)$')
  if not ns then return end
  local suffix = sender .. ':' .. ns
  local facts = read_hash(history_key(suffix), 'state', 'parcel:' .. channel .. ':' .. n)
  if facts[1] ~= 'released' or not facts[2] then return end
  local task, items = { history = suffix, tube = channel }, {}
  for _, entry in ipairs(cjson.decode(facts[2])[2]) do
    local recipient, type_of_id = recipient_in(entry, facts[2])
    items[#items + 1] = { recipient, type_of_id, entry[2], entry[3], entry[4], 'unknown', 'crashed', '', -1 }
  end
  local closed = record(suffix, channel, only_open(task, own_items(id, task, items), false))
  close_entries(suffix, channel, closed)
  if closed > 0 then note(string.format('%.0f recipients unknown', closed)) end
end

keep_aside()
if id ~= '' and not read_task(id) and #changes > 0 then
  for index, key in pairs({ due = due_key(), lease = lease_key(), expires = expires_key(), buried = buried_key(), finished = finished_key() }) do
    leave_index(key, index, id)
  end
  close_lost_parcel()
end
return changes
