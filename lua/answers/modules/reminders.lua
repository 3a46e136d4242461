-- reminders: asks again those whose question is open: waves of reminders, and channels to which a question escalates
-- A wave is made in one step, of the people whose question is open then. Each parcel of the delivery that has some of them gets a copy with
-- them, under the label of the wave in place of the channel (plan.lua); a person is reminded once in a wave, in the first channel that has
-- reached it. A channel of an escalation is one of the delivery, whose parcels wait for their time.
-- The parcels of both ask again (ASKS_AGAIN): their couriers write `sending` before each attempt, and in that step who has answered
-- meanwhile is left out.
-- `answers_reminders` has a line for each wave: `at ms|people|by|labels`; `answers_remind_at` is the ms of the next one that is planned.

-- After this time a reminder that could not be sent is dropped.
local LIFETIME_MS = DAY_MS
-- Reminders by hand of a question that has none of its own.
local MOST_BY_HAND = 3

local function escalates_to(question, channel)
  for _, name in ipairs(question and question.escalate and question.escalate.channels or {}) do
    if name == channel then return true end
  end
  return false
end

-- Returns whether a parcel is sent only to those whose question is open. `facts`: `Parcels.facts_of`.
function Reminders.asks_again(facts, label)
  return Plan.is_reminder(label) or Waves.need_of(facts.question) or escalates_to(facts.question, label)
end

-- Returns when the channels of the escalation of a delivery that is released now are used; nil without one.
function Reminders.escalation_due(facts)
  local question = facts.question
  return question and question.escalate and now + question.escalate.after
end

-- Returns the lines of the waves.
local function waves_of(suffix)
  local lines = {}
  for line in string.gmatch(redis_call('HGET', Key.history(suffix), 'answers_reminders') or '', '[^\n]+') do lines[#lines + 1] = line end
  return lines
end

-- Plans a wave: a task that calls `remind` when it is due.
local function plan_wave(suffix, tenant, wave, due)
  local _, ns = Plan.split_suffix(suffix)
  local code = redis_call('HGET', Key.history(suffix), 'answers_code')
  redis_call('HSET', Key.history(suffix), 'answers_remind_at', due)
  NewTasks.add('answers', { ns .. '.' .. code .. '.' .. wave, tenant, '', 5, due, '', 'remind', '', '', '', '', suffix .. ' ' .. wave })
end

-- Plans the first wave of a delivery that is released.
function Reminders.plan_first(suffix, facts)
  local remind = facts.question and facts.question.remind
  if remind then plan_wave(suffix, facts.tenant, 1, now + remind.after) end
end

-- Returns whether the question of a delivery is open: who has answered it is another matter.
function Reminders.is_open(suffix)
  local facts = redis_call('HMGET', Key.history(suffix), 'answers_closed', 'answers_until', 'state')
  return not facts[1] and not (facts[2] and now >= tonumber(facts[2])) and facts[3] ~= 'cancelled'
end

-- Returns the numbers of those among these items that have answered, as numbers → true.
local function answered_among(suffix, items)
  local found = {}
  if redis_call('HEXISTS', Key.history(suffix), 'answers_children') == 1 then
    for _, item in ipairs(items) do found[item[3]] = Answers.has_answered(suffix, item[3]) or nil end
    return found
  end
  for from = 1, #items, 1000 do
    local fields = {}
    for n = from, math.min(from + 999, #items) do fields[#fields + 1] = 'answer:' .. string.format('%d', items[n][3]) end
    for n, row in ipairs(redis_call('HMGET', Key.history(suffix), unpack(fields))) do
      if row then found[items[from + n - 1][3]] = true end
    end
  end
  return found
end

-- Ends, among the items of a parcel that asks again, those that are about to be sent to people whose question is not open any more. Returns
-- these people, each on a line of its own.
function Reminders.take_unwanted(id, task, items)
  local suffix, label, parcel, sending, lines = task.history, Plan.label_in(id), string.match(id, '(%d+)$'), {}, ''
  for _, item in ipairs(items) do
    if item[6] == 'sending' then sending[#sending + 1] = item end
  end
  if #sending == 0 then return '' end
  local open, answered = Reminders.is_open(suffix), answered_among(suffix, sending)
  local stored = Outcome.stored_outcomes(suffix, label, Outcome.read_items(sending))
  local question = cjson.decode(redis_call('HGET', Key.history(suffix), 'answer'))
  local is_enough, is_early = Waves.is_enough(suffix, question), Waves.is_before_its_turn(suffix, question, label, parcel)
  for n, item in ipairs(sending) do
    local reason = answered[item[3]] and 'answered' or (not open or is_early) and 'question_closed' or is_enough and 'enough_answers'
    if not reason and Answers.is_deleted(suffix, label, parcel, item) then reason = 'opted_out' end
    if reason then
      item[6], item[7] = 'skipped', reason
      -- An attempt before this one may have sent it.
      if Outcome.status_in(stored[n]) == 'sending' then item[6], item[7] = 'unknown', 'crashed' end
      lines = lines .. '\n' .. item[1]
    end
  end
  return lines
end

-- Returns the entries of a parcel that a wave reminds, as JSON. `unwanted`: `channel:number` or `channel:number:contact` → true of those
-- that are left out; `taken`: the numbers of those that it reminds already.
local function reminded_entries(suffix, channel, n, unwanted, taken)
  local text, items, found = redis_call('HGET', Key.history(suffix), 'parcel:' .. channel .. ':' .. n), {}, {}
  if not text then return found end
  local parcel = cjson.decode(text)
  for _, entry in ipairs(parcel[2]) do
    local recipient, kind = Unclear.recipient_in(entry, text)
    items[#items + 1] = { recipient, kind, entry[2], entry[3], entry[4], address = entry[5], hours = entry[6] }
  end
  items = Parcels.own_items(suffix, channel, n, items)
  local answered, stored = answered_among(suffix, items), Outcome.stored_outcomes(suffix, channel, Outcome.read_items(items))
  for place, item in ipairs(items) do
    local name = channel .. ':' .. item[3]
    local is_wanted = not unwanted[name] and not unwanted[name .. ':' .. item[4]]
    local is_reached = REACHED[Outcome.status_in(stored[place])] and is_wanted
    if is_reached and item.address ~= '' and not answered[item[3]] and not taken[item[3]] then
      taken[item[3]] = true
      local recipient = item[2] == 'i' and item[1] or cjson.encode(item[1])
      local hours = item.hours and ',' .. cjson.encode(item.hours) or ''
      found[#found + 1] = string.format('[%s,%d,%d,%d,%s%s]', recipient, item[3], item[4], item[5], cjson.encode(item.address), hours)
    end
  end
  return found, parcel[3]
end

-- Makes the parcels of a wave for one channel. Returns how many people it reminds.
local function add_parcels(suffix, facts, channel_plan, wave, unwanted, taken)
  local people, label = 0, channel_plan.channel .. '~' .. wave
  for n = 0, #channel_plan.parcels - 1 do
    local entries, personal = reminded_entries(suffix, channel_plan.channel, n, unwanted, taken)
    if #entries > 0 then
      local text = '[0,[' .. table.concat(entries, ',') .. ']' .. (personal and ',1' or '') .. ']'
      redis_call('HSET', Key.history(suffix), 'parcel:' .. label .. ':' .. n, text)
      Parcels.add_parcel(suffix, facts, label, n, #entries, nil)
      people = people + #entries
    end
  end
  return people
end

-- Makes a wave now. Returns how many people it reminds.
local function make_wave(suffix, wave, by, unwanted)
  local facts, taken, people, labels = Parcels.facts_of(suffix), {}, 0, {}
  local closes = redis_call('HMGET', Key.history(suffix), 'answers_until', 'answers_reminders')
  facts.expires = math.min(now + LIFETIME_MS, tonumber(closes[1] or nil) or math.huge)
  for _, channel_plan in ipairs(Plan.plan_of(suffix)) do
    local of_channel = add_parcels(suffix, facts, channel_plan, wave, unwanted, taken)
    if of_channel > 0 then labels[#labels + 1] = channel_plan.channel .. '~' .. wave end
    people = people + of_channel
  end
  local line = string.format('%.0f|%d|%s|%s', now, people, by, table.concat(labels, ';'))
  redis_call('HSET', Key.history(suffix), 'answers_reminders', (closes[2] and closes[2] .. '\n' or '') .. line)
  return people
end

-- Reminds now. `wave`: which reminder, so that a repeat changes nothing. `by`: who wants it, '' if it was planned. `unwanted`: those who
-- have opted out since. Returns ["reminded", people], or why not: "again", "closed", "unsent", "enough".
function Reminders.remind(suffix, tenant, wave, by, unwanted)
  local facts, waves = Parcels.facts_of(suffix), #waves_of(suffix)
  local remind = facts.question.remind
  if waves >= wave then return { 'again' } end
  if not Reminders.is_open(suffix) then return { 'closed' } end
  if facts.state == 'scheduled' then return { 'unsent' } end
  if wave > waves + 1 or wave > (remind and remind.most or MOST_BY_HAND) then return { 'enough' } end
  local people, is_finished = make_wave(suffix, wave, by, unwanted), redis_call('HEXISTS', Key.history(suffix), 'finished') == 1
  redis_call('HDEL', Key.history(suffix), 'answers_remind_at')
  if remind and wave < remind.most then plan_wave(suffix, tenant, wave + 1, now + remind.every) end
  Version.raise(suffix)
  Outcome.announce(suffix, 'reminded')
  if is_finished then
    Version.raise(suffix)
    DeliveryEnd.retain(suffix)
  end
  return { 'reminded', people }
end
