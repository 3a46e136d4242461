-- unclear: open entries of a parcel that may have been sent although no outcome says so. Their end is `unknown` (D-38, I18)
-- They are those that the last settle named, and those that a lost worker may have attempted. A worker that does not return leaves `lost`
-- on the parcel: the ms at which its lease ended. It cannot have attempted an entry whose next attempt was due after that, nor, in a
-- channel that writes `sending` before each attempt, an entry that is not `sending` (the same rule as in
-- couriers/sending/parcel.py). An entry that waits is in the checkpoint, also in that of a first claim: a worker writes it
-- before its first attempt.

function Unclear.mark_lost(id) redis_call('HSET', Key.progress(id), 'lost', now) end

-- A whole number beyond 2^53 is not exact in Lua: its digits are taken from the text of the parcel.
function Unclear.recipient_in(entry, text)
  if type(entry[1]) == 'string' then return entry[1], 's' end
  if math.abs(entry[1]) < 2 ^ 53 then return string.format('%.0f', entry[1]), 'i' end
  return string.match(text, string.format('%%[(-?%%d+),%d,%d,%d,"', entry[2], entry[3], entry[4])), 'i'
end

-- Returns the entries that could be attempted in the lost claim: those of the checkpoint, or all if there is none.
local function entries_of_lost_claim(id, task, lost, checkpoint)
  local text = redis_call('HGET', Key.history(task.history), 'parcel:' .. Plan.label_in(id) .. ':' .. string.match(id, '(%d+)$'))
  local entries = text and cjson.decode(text)[2] or {}
  if not checkpoint or checkpoint == '' then return entries, text end
  local found = {}
  for _, row in ipairs(cjson.decode(checkpoint)) do
    if row[2] <= lost then found[#found + 1] = entries[row[1] + 1] end
  end
  return found, text
end

-- Returns the items whose stored outcome is open; with `only_sending`, those that are `sending`.
function Unclear.only_open(id, task, items, only_sending)
  local found = {}
  for n, stored in pairs(Outcome.stored_outcomes(task.history, Plan.label_in(id), Outcome.read_items(items))) do
    local status = Outcome.status_in(stored)
    if status == 'sending' or OPEN[status] and not only_sending then found[#found + 1] = items[n] end
  end
  return found
end

-- Returns the outcome of each of these entries if it is not attempted again.
function Unclear.unclear_items(id, task)
  local facts = redis_call('HMGET', Key.progress(id), 'unclear', 'lost', 'checkpoint')
  local items = facts[1] and Unclear.only_open(id, task, cjson.decode(facts[1]), false) or {}
  if not facts[2] then return items end
  local entries, text = entries_of_lost_claim(id, task, tonumber(facts[2]), facts[3])
  local attempted, known = {}, {}
  for _, item in ipairs(items) do known[item[3] .. ':' .. item[4]] = true end
  for _, entry in ipairs(entries) do
    local recipient, kind = Unclear.recipient_in(entry, text)
    local is_new = not known[entry[2] .. ':' .. entry[3]]
    if is_new then attempted[#attempted + 1] = { recipient, kind, entry[2], entry[3], entry[4], 'unknown', 'crashed', '', -1 } end
  end
  local announces = task.place == ASKS_AGAIN or Task.option(task.tube, 'announces')
  for _, item in ipairs(Unclear.only_open(id, task, attempted, announces)) do items[#items + 1] = item end
  return items
end

-- What `unclear_items` returned in this call: task → `number:contact` → item.
local unclear_by_entry

-- Returns the outcome of an entry that is cancelled: unknown where it may have been sent.
function Unclear.cancelled_item(id, task, item)
  if not unclear_by_entry[id] then
    local found = {}
    for _, unclear in ipairs(Unclear.unclear_items(id, task)) do found[unclear[3] .. ':' .. unclear[4]] = unclear end
    unclear_by_entry[id] = found
  end
  local stored = redis_call('HGET', Key.outcomes(task.history), Outcome.field_of(item[1], Plan.label_in(id), item[4]))
  if Outcome.status_in(stored) == 'sending' then item[6], item[7] = 'unknown', 'crashed' end
  return unclear_by_entry[id][item[3] .. ':' .. item[4]] or item
end

-- A new call reads the unclear entries again.
function Unclear.begin()
  unclear_by_entry = {}
end
