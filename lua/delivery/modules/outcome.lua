-- outcome: writes the outcomes of recipients, and what follows from them, into the history
-- A stored outcome is `status|reason|at ms|version|attempts|reference`. An outcome that was never stored is `queued` while its channel
-- is open; after that it is the end of the delivery (cancelled, expired). In how many parts it was paid follows, with a `+` if a retry is
-- going to add some; then what the provider said, and where the channel could not show all of the content, a list of that:
-- `…|reference<1D>parts<1E>detail<1F>["inline",…]`.

-- One event may carry thousands of outcomes: entries above LARGE bytes leave the stream after a minute.
local LARGE = 10000

function Outcome.status_in(value) return value and string.match(value, '^([^|]*)') or 'queued' end

function Outcome.attempts_in(value)
  return value and tonumber(string.match(value, '^[^|]*|[^|]*|[^|]*|[^|]*|([^|]*)')) or 0
end

function Outcome.field_of(recipient, channel, contact)
  if contact == 0 then return recipient .. ':' .. channel end
  return recipient .. ':' .. channel .. ':' .. contact
end

local function supersedes(new, old) return RANK[new] > RANK[old] or (old == 'sending' and new == 'queued') end

-- Returns one status for a recipient with several contacts in one channel (core/model/states.py `best`).
local function best(statuses)
  for _, wanted in ipairs(BEST) do
    for _, status in ipairs(statuses) do
      if status == wanted then return status end
    end
  end
  return statuses[1]
end

-- Writes one entry to the stream for each step, with all outcomes of that step (I13), or with an answer: the recipient and its row.
-- `changes` and `answer` may be left out.
function Outcome.announce(suffix, event, changes, answer)
  local facts = redis_call('HMGET', Key.history(suffix), 'state', 'version', 'reported', 'finished', 'tenant')
  local entry = {
    'history', suffix, 'event', event, 'state', facts[1], 'version', facts[2] or '0', 'reported', facts[3] or '0',
    'finished', facts[4] and '1' or '0', 'changes', changes or '', 'tenant', facts[5] or '',
  }
  if answer then WriteBuffer.add_words(entry, 'answer', answer) end
  redis_call('XADD', Key.events(), 'MAXLEN', '~', EVENTS_KEPT, '*', unpack(entry))
  if changes and #changes > LARGE then
    redis_call('XTRIM', Key.events(), 'MINID', '~', string.format('%.0f', clock[1] * 1000 - 60000))
  end
end

local function merged_status(suffix, recipient, channel, contacts, instead)
  local statuses = {}
  for contact = 0, contacts - 1 do
    local field = Outcome.field_of(recipient, channel, contact)
    statuses[#statuses + 1] = instead[field] or Outcome.status_in(redis_call('HGET', Key.outcomes(suffix), field))
  end
  return best(statuses)
end

-- Returns whether a recipient was reached in another channel; needed only when a report takes a `sent` back.
local function reached_elsewhere(suffix, recipient, channel)
  for _, other in ipairs(Plan.channels_of(suffix)) do
    local contact = 0
    local value
    repeat
      value = other ~= channel and redis_call('HGET', Key.outcomes(suffix), Outcome.field_of(recipient, other, contact))
      if value and REACHED[Outcome.status_in(value)] then return true end
      contact = contact + 1
    until not value
  end
  return false
end

-- Returns the change in the number of recipients reached.
local function mark_reached(suffix, item, channel, old, new)
  if REACHED[new] and not REACHED[old] then
    return 1 - redis_call('SETBIT', Key.reached(suffix), item.number, 1)
  elseif REACHED[old] and not REACHED[new] and not reached_elsewhere(suffix, item.recipient, channel) then
    return -redis_call('SETBIT', Key.reached(suffix), item.number, 0)
  end
  return 0
end

-- The list of what was not shown, with its separator; '' if there is none.
local function not_shown_in(value) return value and string.match(value, '\31.*$') or '' end

-- What the provider said, with its separator; '' if it said nothing.
local function detail_in(value) return value and string.match(value, '\30[^\31]*') or '' end

-- In how many parts it was paid, such as `2` or `2+`, with its separator; '' if it was not paid in parts.
local function parts_in(value) return value and string.match(value, '\29%d+%+?') or '' end

local function text_or_nil(text) return text ~= '' and text or nil end

-- items: [[recipient, "i"|"s" (type of its id), number, contact, contacts, status, reason, reference, attempts, not shown (JSON)?,
-- detail?, exchange?, parts?, price?], …]; of the last five those behind the last known one are missing, and others are ''.
-- `exchange`: exchanges.lua; `parts`: in how many it was paid if it was sent, for the price of each
function Outcome.read_items(items)
  local read = {}
  for n, item in ipairs(items) do
    local not_shown, detail = text_or_nil(item[10]), text_or_nil(item[11])
    read[n] = {
      recipient = item[1], type = item[2], number = item[3], contact = item[4], contacts = item[5], status = item[6],
      reason = item[7], reference = item[8], attempts = item[9], not_shown = not_shown and '\31' .. not_shown,
      detail = detail and '\30' .. detail, exchange = text_or_nil(item[12]), parts = item[13], price = item[14],
    }
  end
  return read
end

function Outcome.stored_outcomes(suffix, channel, items)
  local stored = {}
  for from = 1, #items, 1000 do
    local fields = {}
    for n = from, math.min(from + 999, #items) do fields[#fields + 1] = Outcome.field_of(items[n].recipient, channel, items[n].contact) end
    for n, value in ipairs(redis_call('HMGET', Key.outcomes(suffix), unpack(fields))) do stored[from + n - 1] = value end
  end
  return stored
end

local function store_outcomes(suffix, fields)
  for from = 1, #fields, 1000 do
    redis_call('HSET', Key.outcomes(suffix), unpack(fields, from, math.min(from + 999, #fields)))
  end
end

-- A report may come after the end of the delivery and write its first outcome: these keys get the lifetime of the history (I16).
local function end_with_history(suffix)
  local ends_in = redis_call('PTTL', Key.history(suffix))
  if ends_in < 0 then return end
  for _, key in ipairs({ Key.outcomes(suffix), Key.reached(suffix) }) do redis_call('PEXPIRE', key, ends_in) end
end

-- Returns the parts of an outcome with those of a further message, and adds them to the costs. An outcome that has parts was counted.
local function paid_parts(step, item, stored)
  local known = parts_in(stored)
  local is_counted = known ~= '' and string.sub(known, -1) ~= '+'
  if step.forced then return is_counted and known .. '+' or known end
  if not item.parts or is_counted then return known end
  step.parts[item.price] = (step.parts[item.price] or 0) + item.parts
  return '\29' .. string.format('%.0f', (tonumber(string.match(known, '%d+')) or 0) + item.parts)
end

local function value_of(step, item, stored)
  local attempts = item.attempts >= 0 and item.attempts or Outcome.attempts_in(stored)
  local forced, parts = step.forced, paid_parts(step, item, stored)
  -- A delivery report does not know what was not shown.
  local not_shown = item.not_shown or (forced and '' or not_shown_in(stored))
  -- What ends without an attempt keeps the detail of the last attempt; what arrived does not.
  local detail = item.detail or (forced or REACHED[item.status]) and '' or detail_in(stored)
  local numbers = string.format('%.0f|%.0f|%.0f', now, step.version, attempts)
  return item.status .. '|' .. item.reason .. '|' .. numbers .. '|' .. item.reference .. parts .. detail .. not_shown
end

-- Returns a stored outcome, which a delivery report wrote before the courier's own came, with what the report did not know.
local function completed(step, item, stored)
  local value = stored
  local parts = paid_parts(step, item, stored)
  if parts ~= parts_in(stored) then
    local before, after = string.match(stored, '^([^\29\30\31]*)[^\30\31]*(.*)$')
    value = before .. parts .. after
  end
  if item.not_shown and not_shown_in(stored) == '' then value = value .. item.not_shown end
  return value
end

local function count_change(step, item, old, new)
  if old == new or Plan.is_reminder(step.channel) then return end
  step.by_status[old] = (step.by_status[old] or 0) - 1
  step.by_status[new] = (step.by_status[new] or 0) + 1
  local change = mark_reached(step.suffix, item, step.channel, old, new)
  step.reached = step.reached + change
  if change ~= 0 and step.asked then Answers.note_reached(step.suffix, item.number, change) end
end

-- Keeps the last words of the provider for each way in which messages of a channel ended, for the overview of operators.
local function keep_words(channel, said)
  if not next(said) then return end
  for name, detail in pairs(said) do redis_call('HSET', Key.last_words(), channel .. ':' .. name, detail) end
  redis_call('PEXPIRE', Key.last_words(), 7 * DAY_MS)
end

-- Counts what was written by channel, status and reason, for the figures of operators (core/monitoring). `counted`: `status|reason` → n.
local function count_written(channel, counted)
  for name, n in pairs(counted) do WriteBuffer.add_up(Key.outcome_counts(), channel, name, n) end
end

-- Counts entries that ended without a stored outcome.
function Outcome.count_derived(channel, final, n)
  if n > 0 then count_written(channel, { [final .. '|'] = n }) end
end

local function add_outcome(step, item, field, old, stored)
  local new, old_merged, new_merged = item.status, old, item.status
  if item.contacts > 1 then old_merged = merged_status(step.suffix, item.recipient, step.channel, item.contacts, step.written) end
  step.written[field] = new
  if item.contacts > 1 then new_merged = merged_status(step.suffix, item.recipient, step.channel, item.contacts, step.written) end
  step.version = step.version + 1
  local value = value_of(step, item, stored)
  WriteBuffer.add_words(step.fields, field, value)
  step.changes[#step.changes + 1] = item.type .. item.recipient .. '\t' .. step.channel .. '\t' .. value
  if not OPEN[new] then
    local name = new .. '|' .. item.reason
    step.counted[name] = (step.counted[name] or 0) + 1
    if item.detail then step.said[name] = string.sub(item.detail, 2) end
    if OPEN[old] and (REACHED[new] or new == 'unknown') then step.sent = step.sent + 1 end
  end
  if OPEN[old] and not OPEN[new] then step.closed = step.closed + 1 end
  if OPEN[new] and not OPEN[old] then step.closed = step.closed - 1 end
  count_change(step, item, old_merged, new_merged)
end

local function store_step(step)
  local history = Key.history(step.suffix)
  if #step.fields > 0 then store_outcomes(step.suffix, step.fields) end
  Costs.count(step.suffix, step.tenant, Plan.channel_of(step.channel), step.sent, step.parts)
  if #step.changes == 0 then return end
  count_written(Plan.channel_of(step.channel), step.counted)
  keep_words(Plan.channel_of(step.channel), step.said)
  if step.reached ~= 0 then redis_call('HINCRBY', history, 'reached', step.reached) end
  end_with_history(step.suffix)
  step.by_status.queued = nil
  for status, n in pairs(step.by_status) do
    if n ~= 0 then redis_call('HINCRBY', history, 'n:' .. step.channel .. ':' .. status, n) end
  end
  redis_call('HSET', history, 'version', step.version)
  Outcome.announce(step.suffix, 'outcomes', table.concat(step.changes, '\n'))
  -- The version of a finished history belongs to its end: a later report moves the end behind itself, so no two events have one version.
  if step.finished then Version.raise(step.suffix) end
end

-- Writes outcomes, keeps the counters and emits the event. Returns how many entries were closed, less those opened again.
-- `forced`: a retry asked for by a person, the one case in which a higher rank gives way to a lower one. `forced` may be left out.
function Outcome.record(suffix, channel, raw_items, forced)
  local history = Key.history(suffix)
  if #raw_items == 0 or redis_call('EXISTS', history) == 0 then return 0 end
  local items = Outcome.read_items(raw_items)
  local stored = Outcome.stored_outcomes(suffix, channel, items)
  local facts = redis_call('HMGET', history, 'version', 'finished', 'answers_code', 'tenant')
  local step = {
    suffix = suffix, channel = channel, forced = forced, version = Version.of(facts[1]), finished = facts[2], asked = facts[3],
    tenant = facts[4] or '', fields = {}, changes = {}, written = {}, by_status = {}, counted = {}, said = {}, exchanges = {}, parts = {},
    closed = 0, reached = 0, sent = 0,
  }
  for n, item in ipairs(items) do
    local field = Outcome.field_of(item.recipient, channel, item.contact)
    local old = step.written[field] or Outcome.status_in(stored[n])
    if item.exchange then WriteBuffer.add_words(step.exchanges, field, item.exchange) end
    if forced or supersedes(item.status, old) then
      add_outcome(step, item, field, old, stored[n])
    elseif stored[n] and (item.not_shown or item.parts) then
      local value = completed(step, item, stored[n])
      if value ~= stored[n] then WriteBuffer.add_words(step.fields, field, value) end
    end
  end
  store_step(step)
  Exchanges.keep(suffix, step.exchanges)
  return step.closed
end
