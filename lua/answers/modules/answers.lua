-- answers: the question of a delivery, and what its recipients have answered, in the fields of its history
-- `answer` is the question as JSON, `answers_code` its code, `answers_until` when it closes and `answers_closed` when it was closed, in ms,
-- `answers_closing` the version with which it was, `answers_openings` how often it was opened again.
-- `answer:<number of the recipient>` is a row: state, value, text, at, by, who, channel, version; `revisions`: what it was before;
-- `events`: the last events of the person, each with its result. `answers:<state>` and `answers:option:<key>` count rows;
-- `answers:unreached` counts those of recipients that are not known to be reached; `answers:sum` is of the numbers that count, in
-- hundredths. The `value` of a row is the key of an option, a number, a date or the id of a file; a text has only `text`.
-- An option may have `places`: who comes when they are taken gets a row with `waiting`, its ticket, which `answers:waiting:<key>` counts
-- in place of `answers:option:<key>`. `answers_line:<key>:<ticket>` names who has it; `answers_last:<key>` and `answers_first:<key>` are
-- the ticket that was given last, and the last one that has left the line. The data of a person that has a place or waits may be deleted
-- before the closing: then its row has `freed`, and counts for neither.

-- In a group chat people answer that are no recipients themselves: its members. Their numbers are behind those of the recipients:
-- `answers_members` counts them, `answers_member:<number>` names one, as `answers_number:<recipient>` does the other way round.
-- `answers_chats` has the numbers of the recipients that are chats in which somebody has answered.

-- A delivery to guardians asks about children: `answers_children:<page>` has for each recipient of a page the numbers of the rows that it
-- fills, `answers_children` how many rows there are, `answers_reached:<number>` how many people were reached about a child, and
-- `answers_children_reached` about how many children somebody was. The row of a child has `voices`: what each of these people has said
-- last. What counts is the last voice, and of a consent a refusal; `conflict`: they differ. `answers:conflict` counts these rows.

local PEOPLE_OF_PAGE = 200
local MOST_EVENTS, MOST_REVISIONS = 20, 100
-- Within this time also an answer that is final can be corrected: a wrong button was pressed.
local CORRECTION_MS = 60000

local function field_of(number) return 'answer:' .. number end

local function add(suffix, name, n) redis_call('HINCRBY', Key.history(suffix), 'answers:' .. name, n) end

-- Has the question closed at a time. `closes`: ms, 0 for never. `opening`: '', and another name each time that it is opened again.
local function plan_closing(suffix, tenant, code, closes, opening)
  if closes == 0 then return end
  redis_call('HSET', Key.history(suffix), 'answers_until', closes)
  local _, ns = Plan.split_suffix(suffix)
  NewTasks.add('answers', { ns .. '.' .. code .. opening, tenant, '', 5, closes, '', 'close', '', '', '', '', suffix })
end

-- Opens the question of a new delivery. `closes`: ms, 0 for never.
function Answers.open(suffix, tenant, code, closes)
  redis_call('SET', Key.asked(code), suffix)
  redis_call('HSET', Key.history(suffix), 'answers_code', code)
  plan_closing(suffix, tenant, code, closes, '')
end

function Answers.row_of(suffix, number)
  local text = redis_call('HGET', Key.history(suffix), field_of(number))
  return text and cjson.decode(text) or nil
end

-- Returns the number of a member of a group chat: a new one is counted when it has a row.
function Answers.member_number(suffix, recipient)
  local facts = redis_call('HMGET', Key.history(suffix), 'answers_number:' .. recipient, 'recipients', 'answers_members')
  return tonumber(facts[1] or facts[2] + (facts[3] or 0))
end

local function count_member(suffix, number, recipient)
  local history = Key.history(suffix)
  if number < tonumber(redis_call('HGET', history, 'recipients')) then return end
  if redis_call('HSETNX', history, 'answers_member:' .. number, recipient) == 0 then return end
  redis_call('HSET', history, 'answers_number:' .. recipient, number)
  redis_call('HINCRBY', history, 'answers_members', 1)
end

-- Notes that somebody has answered in a group chat: from now on its message shows the totals.
function Answers.note_chat(suffix, chat)
  local known = redis_call('HGET', Key.history(suffix), 'answers_chats') or ''
  if string.find(' ' .. known .. ' ', ' ' .. chat .. ' ', 1, true) then return end
  redis_call('HSET', Key.history(suffix), 'answers_chats', known == '' and chat or known .. ' ' .. chat)
end

local function save(suffix, number, row) redis_call('HSET', Key.history(suffix), field_of(number), cjson.encode(row)) end

-- Returns the result of an event that was seen before, nil for a new one.
function Answers.result_of_event(row, event)
  for _, line in ipairs(row and row.events or {}) do
    local seen, result = string.match(line, '^(%S+) (%S+)$')
    if seen == event then return result end
  end
end

-- Returns the numbers of the rows that a recipient fills; nil if it is its own, as everywhere but in a delivery to guardians.
local function children_of(suffix, number)
  local page = redis_call('HGET', Key.history(suffix), 'answers_children:' .. math.floor(number / PEOPLE_OF_PAGE))
  if not page then return nil end
  local place, found = number % PEOPLE_OF_PAGE, {}
  for row in string.gmatch(page .. ';', '([^;]*);') do
    if place == 0 then
      for child in string.gmatch(row, '%d+') do found[#found + 1] = tonumber(child) end
      return found
    end
    place = place - 1
  end
end

-- Returns whether a recipient has answered, or somebody has for each child about whom it was asked.
function Answers.has_answered(suffix, number)
  for _, row in ipairs(children_of(suffix, number) or { number }) do
    if redis_call('HEXISTS', Key.history(suffix), field_of(row)) == 0 then return false end
  end
  return true
end

local function note_children_reached(suffix, children, change)
  local history = Key.history(suffix)
  for _, child in ipairs(children) do
    local people = redis_call('HINCRBY', history, 'answers_reached:' .. child, change)
    if people == (change == 1 and 1 or 0) then
      redis_call('HINCRBY', history, 'answers_children_reached', change)
      if redis_call('HEXISTS', history, field_of(child)) == 1 then add(suffix, 'unreached', -change) end
    end
  end
end

-- A recipient was reached (1), or is not known to be reached any more (-1).
function Answers.note_reached(suffix, number, change)
  local children = children_of(suffix, number)
  if children then return note_children_reached(suffix, children, change) end
  if redis_call('HEXISTS', Key.history(suffix), field_of(number)) == 1 then add(suffix, 'unreached', -change) end
end

-- Returns whether the address of an entry was removed with the data of its person (core/deliveries/of_person.py).
function Answers.is_deleted(suffix, channel, parcel, item)
  local text = redis_call('HGET', Key.history(suffix), 'parcel:' .. channel .. ':' .. parcel) or ''
  return string.find(text, string.format(',%d,%d,%d,""]', item[3], item[4], item[5]), 1, true) ~= nil
end

-- A press shows that its message has arrived: its outcome becomes read. `item` as in outcome.lua.
function Answers.note_arrival(suffix, channel, parcel, item)
  local stored = redis_call('HGET', Key.outcomes(suffix), Outcome.field_of(item[1], channel, item[4]))
  item[8] = stored and string.match(stored, '^[^|]*|[^|]*|[^|]*|[^|]*|[^|]*|([^\29\30\31]*)') or ''
  Parcels.record_known(suffix, channel, Parcels.latest_parcel(suffix, channel, parcel, item), { item })
end

-- The version of a finished history belongs to its end: what comes later moves the end behind itself, as an outcome does.
local function move_end(suffix)
  local is_finished = redis_call('HEXISTS', Key.history(suffix), 'finished') == 1
  if is_finished then Version.raise(suffix) end
  return is_finished
end

-- As `move_end`, and the retention of a finished delivery starts anew: with the closing of its question, or with the next one.
local function retain(suffix)
  if move_end(suffix) then DeliveryEnd.retain(suffix) end
end

-- Returns whether the question has just been closed. Nobody can open it again. A task does what follows (core/updates/question_notices.py).
function Answers.close(suffix)
  if redis_call('HSETNX', Key.history(suffix), 'answers_closed', now) == 0 then return false end
  redis_call('HSET', Key.history(suffix), 'answers_closing', Version.raise(suffix))
  Outcome.announce(suffix, 'closed')
  retain(suffix)
  Waves.dismiss(suffix)
  local facts = redis_call('HMGET', Key.history(suffix), 'tenant', 'answers_code', 'answers_openings')
  local _, ns = Plan.split_suffix(suffix)
  local id = ns .. '.' .. facts[2] .. '.closed' .. (facts[3] and '.' .. facts[3] or '')
  NewTasks.add('answers', { id, facts[1], '', 5, '', '', 'closed', '', '', '', '', suffix })
  return true
end

-- Opens a question that is closed: answers count again, and late ones stay late until they are given again. `closes`: as in `open`.
-- Returns whether it was closed. A task shows the buttons again (core/updates/question_notices.py).
function Answers.reopen(suffix, closes)
  local history = Key.history(suffix)
  local tenant, code, closed, till = unpack(redis_call('HMGET', history, 'tenant', 'answers_code', 'answers_closed', 'answers_until'))
  if not closed and not (till and now >= tonumber(till)) then return false end
  Answers.close(suffix)
  redis_call('HDEL', history, 'answers_closed', 'answers_closing', 'answers_until')
  local opening = '.opened.' .. redis_call('HINCRBY', history, 'answers_openings', 1)
  plan_closing(suffix, tenant, code, closes, opening .. '.close')
  Version.raise(suffix)
  Outcome.announce(suffix, 'reopened')
  retain(suffix)
  local _, ns = Plan.split_suffix(suffix)
  NewTasks.add('answers', { ns .. '.' .. code .. opening, tenant, '', 5, '', '', 'reopened', '', '', '', '', suffix })
  return true
end

local function is_final(question, row) return not question.change and now - row.at > CORRECTION_MS end

-- Returns what an answer to the question leads to: `same`, `closed`, `final` and `many` leave the row as it is.
function Answers.result_of(question, row, value, text, is_closed)
  local stays = row and (row.state == 'answered' or is_closed)
  if stays and row.value == value and (row.text or '') == text then return 'same' end
  if is_closed and row and row.state == 'answered' and question.late ~= 'count' then return 'closed' end
  if not is_closed and row and row.state == 'answered' and is_final(question, row) then return 'final' end
  if row and #(row.revisions or {}) >= MOST_REVISIONS then return 'many' end
  if is_closed and not (row and row.state == 'answered') then return 'late' end
  return row and 'changed' or 'answered'
end

local function is_counted(question, state) return state == 'answered' or question.late == 'count' end

local HAS_OPTIONS = { confirm = true, choice = true }

-- Counts what a row says, or with the sign -1 no longer. A sum is in hundredths.
local function count_value(suffix, question, row, sign)
  if row.freed or not is_counted(question, row.state) then return end
  if HAS_OPTIONS[question.kind] then
    add(suffix, (row.waiting and 'waiting:' or 'option:') .. row.value, sign)
  elseif question.kind == 'number' then
    add(suffix, 'sum', string.format('%.0f', sign * tonumber(row.value) * 100 + 0))
  end
end

local function count(suffix, question, number, old, row)
  if old then count_value(suffix, question, old, -1) end
  count_value(suffix, question, row, 1)
  local conflicts = (row.conflict and 1 or 0) - (old and old.conflict and 1 or 0)
  if conflicts ~= 0 then add(suffix, 'conflict', conflicts) end
  if old and old.state ~= row.state then add(suffix, old.state, -1) end
  if not old or old.state ~= row.state then add(suffix, row.state, 1) end
  if old then return end
  local people = redis_call('HGET', Key.history(suffix), 'answers_reached:' .. number)
  if not people and redis_call('GETBIT', Key.reached(suffix), number) == 0 or people == '0' then add(suffix, 'unreached', 1) end
end

-- Notes an event that changes nothing.
function Answers.note_event(suffix, number, row, event, result)
  row.events[#row.events + 1] = event .. ' ' .. result
  if #row.events > MOST_EVENTS then table.remove(row.events, 1) end
  save(suffix, number, row)
end

local function places_of(question, key)
  for _, option in ipairs(question.options) do
    if option.key == key then return option.places end
  end
end

local function free_places(suffix, question, key)
  local places = places_of(question, key)
  return places and places - tonumber(redis_call('HGET', Key.history(suffix), 'answers:option:' .. key) or '0')
end

-- Returns the ticket of an answer for which no place is free; nil with a place, or for an option without places. `old`: the answer before.
local function ticket_of(suffix, question, number, recipient, old, row)
  if not is_counted(question, row.state) then return nil end
  if old and old.value == row.value and is_counted(question, old.state) then return old.waiting end
  local free = free_places(suffix, question, row.value)
  if not free or free > 0 then return nil end
  local ticket = redis_call('HINCRBY', Key.history(suffix), 'answers_last:' .. row.value, 1)
  redis_call('HSET', Key.history(suffix), 'answers_line:' .. row.value .. ':' .. ticket, number .. ' ' .. recipient)
  return ticket
end

-- Returns the row that everybody may see who sees the delivery (core/model/question.py, `shown_row`).
local function shown_row(question, row)
  if question.visible ~= 'hidden' then return row end
  return { state = row.state, value = '', at = row.at, by = row.by, version = row.version, channel = row.channel }
end

-- Gives a place to a person that has waited for it, if it still waits. Its task notifies the person.
local function give_place(suffix, question, key, ticket)
  local field = 'answers_line:' .. key .. ':' .. ticket
  local number, recipient = string.match(redis_call('HGET', Key.history(suffix), field), '^(%d+) (.*)$')
  redis_call('HDEL', Key.history(suffix), field)
  local row = Answers.row_of(suffix, number)
  if row.value ~= key or row.waiting ~= ticket then return end
  add(suffix, 'waiting:' .. key, -1)
  add(suffix, 'option:' .. key, 1)
  row.waiting, row.version = nil, Version.raise(suffix)
  save(suffix, number, row)
  Outcome.announce(suffix, 'answer', '', recipient .. '\t' .. cjson.encode(shown_row(question, row)))
  move_end(suffix)
  local facts, ns = redis_call('HMGET', Key.history(suffix), 'tenant', 'answers_code'), select(2, Plan.split_suffix(suffix))
  local id = ns .. '.' .. facts[2] .. '.place.' .. number .. '.' .. ticket
  NewTasks.add('answers', { id, facts[1], '', 5, '', '', 'place', '', '', '', '', suffix .. ' ' .. number })
end

-- Gives the free places of an option to those who wait for them, in their order.
local function give_places(suffix, question, key)
  local history = Key.history(suffix)
  while (free_places(suffix, question, key) or 0) > 0 do
    local line = redis_call('HMGET', history, 'answers_first:' .. key, 'answers_last:' .. key)
    if tonumber(line[1] or '0') >= tonumber(line[2] or '0') then return end
    give_place(suffix, question, key, redis_call('HINCRBY', history, 'answers_first:' .. key, 1))
  end
end

-- Takes the place of a person whose data were deleted, or its ticket, and gives it to who has waited longest. Returns whether it had one.
function Answers.free_place(suffix, question, number, recipient)
  local row = Answers.row_of(suffix, number)
  if not row or row.freed or not is_counted(question, row.state) or not places_of(question, row.value) then return false end
  count_value(suffix, question, row, -1)
  row.waiting, row.freed, row.version = nil, true, Version.raise(suffix)
  save(suffix, number, row)
  Outcome.announce(suffix, 'answer', '', recipient .. '\t' .. cjson.encode(shown_row(question, row)))
  move_end(suffix)
  give_places(suffix, question, row.value)
  return true
end

-- Has the other messages of a person show an answer, and those of group chats the totals (core/answers/copies.py). The message in which
-- it was pressed shows it already, unless it is that of a chat; one to which somebody has replied in words does not.
local function show_in_copies(suffix, number, row, is_in_chat)
  local tenant, code, plan, chats = unpack(redis_call('HMGET', Key.history(suffix), 'tenant', 'answers_code', 'plan', 'answers_chats'))
  local channel = not is_in_chat and row.by ~= 'text' and row.channel or ''
  if channel ~= '' and not chats and not string.find(plan, ';', 1, true) then return end
  local _, ns = Plan.split_suffix(suffix)
  local name = string.format('%s.%s.%d.%d', ns, code, number, row.version)
  local body = string.format('%s %d %s', suffix, number, channel)
  NewTasks.add('answers', { name, tenant, '', 5, '', '', 'copies', '', '', '', '', body })
end

-- Has an answer start the scenarios of a bot that has a trigger for answers (core/updates/question_notices.py).
local function tell_bot(suffix, number, row)
  local tenant, code = unpack(redis_call('HMGET', Key.history(suffix), 'tenant', 'answers_code'))
  if redis_call('SISMEMBER', Key.answer_bots(), tenant) == 0 then return end
  local name = string.format('%s.%s.bot.%d.%d', select(2, Plan.split_suffix(suffix)), code, number, row.version)
  NewTasks.add('answers', { name, tenant, '', 5, '', '', 'answered', '', '', '', '', suffix .. ' ' .. number })
end

-- Returns whether an answer is that of one of several people who answer for a child. What is entered on behalf settles it.
function Answers.is_voice(suffix, by, who)
  return who ~= '' and by ~= 'on_behalf' and redis_call('HEXISTS', Key.history(suffix), 'answers_children') == 1
end

-- Returns what one of them has said for a child, as a row; nil before the first answer.
function Answers.voice_of(row, who)
  for _, voice in ipairs(row and row.voices or {}) do
    if voice.who == who then
      return { state = row.state, value = voice.value, text = voice.text, at = voice.at, revisions = row.revisions }
    end
  end
end

-- Returns the row of a child, without its answer, as that of a guardian who has not answered; nil before the first answer of any.
function Answers.without_voice(row)
  return row and { state = row.state, at = row.at, revisions = row.revisions } or nil
end

-- Returns the voices for a child with that of `given` last, and the one that counts: it, or of a consent the last refusal.
local function voices_with(question, row, given)
  local voices = {}
  for _, voice in ipairs(row and row.voices or {}) do
    if voice.who ~= given.who then voices[#voices + 1] = voice end
  end
  local own = { who = given.who, value = given.value, text = given.text ~= '' and given.text or nil, at = now, by = given.by,
    channel = given.channel ~= '' and given.channel or nil }
  voices[#voices + 1] = own
  if not question.consent then return voices, own end
  for n = #voices, 1, -1 do
    if voices[n].value == question.options[2].key then return voices, voices[n] end
  end
  return voices, own
end

local function differ(voices)
  for _, voice in ipairs(voices) do
    if voice.value ~= voices[1].value then return true end
  end
end

-- Stores an answer. `row`: the one before, if there is one; `given`: value, text, by, who, channel, is_in_chat, is_voice. Returns the new
-- row.
function Answers.store(suffix, question, number, recipient, row, given, event, result)
  local state = result == 'late' and 'late' or 'answered'
  local voices, counts = nil, given
  if given.is_voice then voices, counts = voices_with(question, row, given) end
  local new = {
    state = state, value = counts.value, text = counts.text ~= '' and counts.text or nil, at = counts.at or now, by = counts.by,
    who = counts.who ~= '' and counts.who or nil, voices = voices, conflict = voices and differ(voices),
    channel = counts.channel ~= '' and counts.channel or nil, version = Version.raise(suffix), events = row and row.events or {},
    revisions = row and row.revisions,
  }
  if row then
    new.revisions = new.revisions or {}
    table.insert(new.revisions, { value = row.value, text = row.text, at = row.at, by = row.by, who = row.who, channel = row.channel })
  end
  new.waiting = ticket_of(suffix, question, number, recipient, row, new)
  count(suffix, question, number, row, new)
  Answers.note_event(suffix, number, new, event, result)
  count_member(suffix, number, recipient)
  Outcome.announce(suffix, 'answer', '', recipient .. '\t' .. cjson.encode(shown_row(question, new)))
  if redis_call('HEXISTS', Key.history(suffix), 'answers_children') == 0 then
    if HAS_OPTIONS[question.kind] then show_in_copies(suffix, number, new, given.is_in_chat) end
    tell_bot(suffix, number, new)
  end
  Waves.note_answer(suffix, question, new)
  move_end(suffix)
  if row and row.value ~= new.value then give_places(suffix, question, row.value) end
  return new
end

local function all_places_are_taken(suffix, question)
  local limited = false
  for _, option in ipairs(question.options) do
    local free = free_places(suffix, question, option.key)
    if free and free > 0 then return false end
    limited = limited or free ~= nil
  end
  return limited
end

-- Closes a question whose answers are final, when each recipient has answered it or all places are taken. A consent of
-- guardians waits for those who may still refuse.
function Answers.close_when_complete(suffix, question)
  if question.change then return end
  local counts = redis_call('HMGET', Key.history(suffix), 'recipients', 'answers:answered', 'answers_children')
  if question.consent and counts[3] then return end
  local all_answered = tonumber(counts[3] or counts[1]) <= tonumber(counts[2] or 0)
  if all_answered or all_places_are_taken(suffix, question) then Answers.close(suffix) end
end

-- Counts an answer to an anonymous question. Its row is the same for everybody: no value, time, order, event or channel joins the person
-- and what it has said, and nothing is announced. Who has answered cannot change it. Returns the result and a row to show.
function Answers.take_part(suffix, question, number, recipient, value, is_closed)
  local known = Answers.row_of(suffix, number)
  local row = { state = 'answered', value = '', at = 0, by = '', version = 0 }
  if known then return 'same', known end
  if is_closed then return 'closed', row end
  save(suffix, number, row)
  count_member(suffix, number, recipient)
  add(suffix, 'answered', 1)
  add(suffix, 'option:' .. value, 1)
  if redis_call('GETBIT', Key.reached(suffix), number) == 0 then add(suffix, 'unreached', 1) end
  Answers.close_when_complete(suffix, question)
  return 'answered', row
end
