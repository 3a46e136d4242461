-- waves: asks the people of a delivery one wave after another, until enough have confirmed
-- A delivery whose question has `need` has one person in each parcel. The parcels of the first wave are sent at once, the others wait
-- without end until they are let go. `answers_asked` counts the parcels that were let go, `answers_waves` the waves that came by time, and
-- `answers_further` the people that these have added. To confirm is to choose the first option.
-- Couriers write `sending` before each attempt (ASKS_AGAIN): whoever is not needed in that step any more is left out.

function Waves.need_of(question) return question and question.need or nil end

-- Returns when a parcel of a delivery that is released now is sent: nil for at once. `n`: its number, from 0. Of a question that was closed
-- before all go at once, and are left out.
function Waves.due_of(suffix, facts, n)
  local need = Waves.need_of(facts.question)
  return need and n >= need.people and Reminders.is_open(suffix) and AWAITING_MS or nil
end

local function confirmed(suffix, question)
  return tonumber(redis_call('HGET', Key.history(suffix), 'answers:option:' .. question.options[1].key) or '0')
end

-- Returns whether as many people have confirmed as are needed.
function Waves.is_enough(suffix, question)
  local need = Waves.need_of(question)
  return need and confirmed(suffix, question) >= need.people or false
end

local function put_task(suffix, tenant, name, due, body)
  local _, ns = Plan.split_suffix(suffix)
  local code = redis_call('HGET', Key.history(suffix), 'answers_code')
  NewTasks.add('answers', { ns .. '.' .. code .. '.wave.' .. name, tenant, '', 5, due, '', 'wave', '', '', '', '', suffix .. ' ' .. body })
end

local function plan_wave(suffix, tenant, need, wave) put_task(suffix, tenant, wave, now + need.every, wave) end

-- Returns how many people a delivery can ask, and its plan.
local function people_of(suffix)
  local plan, people = Plan.plan_of(suffix), 0
  for _, channel_plan in ipairs(plan) do people = math.max(people, #channel_plan.parcels) end
  return people, plan
end

-- Plans the second wave of a delivery that is released.
function Waves.begin(suffix, facts)
  local need, people = Waves.need_of(facts.question), people_of(suffix)
  if not need then return end
  redis_call('HSET', Key.history(suffix), 'answers_asked', math.min(need.people, people))
  if need.people < people then plan_wave(suffix, facts.tenant, need, 1) end
end

-- Lets the parcels of the person with this place go. Returns whether it has any: whose turn had not come when the question was closed has
-- none any more.
local function let_go(suffix, plan, n)
  local is_left = false
  for _, channel_plan in ipairs(plan) do
    local id = Plan.parcel_id(suffix, channel_plan.channel, n)
    local task = Record.read(id)
    is_left = is_left or task ~= nil
    if task and task.state == 'waiting' then
      task.due = now
      Record.save(id, task)
      Timers.await_moment(now, id)
    end
  end
  return is_left
end

-- Returns whether the person of a parcel was not asked yet: its parcel was let go by a closing, and is left out also if the question was
-- opened again meanwhile. A parcel of a retry, whose person was asked, begins with the number of the retry.
function Waves.is_before_its_turn(suffix, question, label, n)
  if not Waves.need_of(question) then return false end
  local facts = redis_call('HMGET', Key.history(suffix), 'answers_asked', 'parcel:' .. label .. ':' .. n)
  return tonumber(n) >= tonumber(facts[1] or '0') and string.sub(facts[2] or '', 1, 3) == '[0,'
end

-- An answer that does not confirm asks the next person at once: a task does, so that quiet hours can move it.
function Waves.note_answer(suffix, question, row)
  if not Waves.need_of(question) or row.value == question.options[1].key then return end
  put_task(suffix, redis_call('HGET', Key.history(suffix), 'tenant'), 'after.' .. row.version, '', 0)
end

-- Asks as many people as should be asked by now: those of the first wave, one for each answer that does not confirm, and those of the waves
-- that came by time. `wave`: which one comes now, 0 for none. Returns ["asked", people] or why not: "again", "closed", "unsent", "enough".
function Waves.ask_next(suffix, wave)
  local facts, history = Parcels.facts_of(suffix), Key.history(suffix)
  local question, need = facts.question, Waves.need_of(facts.question)
  if not need or not Reminders.is_open(suffix) then return { 'closed' } end
  if facts.state == 'scheduled' then return { 'unsent' } end
  local known = redis_call('HMGET', history, 'answers_asked', 'answers_waves', 'answers_further', 'answers:answered')
  local asked, waves, further = tonumber(known[1] or '0'), tonumber(known[2] or '0'), tonumber(known[3] or '0')
  local missing, people, plan = need.people - confirmed(suffix, question), people_of(suffix)
  if wave > 0 then
    if waves >= wave then return { 'again' } end
    further = further + math.max(0, missing)
    redis_call('HSET', history, 'answers_waves', wave, 'answers_further', further)
    if asked < people then plan_wave(suffix, facts.tenant, need, wave + 1) end
  end
  if missing <= 0 then return { 'enough' } end
  local declined = tonumber(known[4] or '0') - (need.people - missing)
  local last, found = math.min(people, need.people + further + declined), 0
  for n = asked, last - 1 do
    if let_go(suffix, plan, n) then found = found + 1 end
  end
  if last > asked then redis_call('HSET', history, 'answers_asked', last) end
  return { 'asked', found }
end

-- The question was closed: the parcels that still wait are let go, and left out in the step that would send them.
function Waves.dismiss(suffix)
  local asked = redis_call('HGET', Key.history(suffix), 'answers_asked')
  if not asked then return end
  local people, plan = people_of(suffix)
  for n = tonumber(asked), people - 1 do let_go(suffix, plan, n) end
end
