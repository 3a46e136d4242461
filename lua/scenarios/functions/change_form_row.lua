-- change_form_row: store answers of a person in a row of a form, or delete the row, once for each step
-- ARGV    tenant, form, row, channel, address, step, at_ms:int, kept_ms:int, step_ms:int, most:int, most_of_person:int, answers:rest
--         row: its name, "" for the row of a person that has one; step: "" if a repeat writes the same; at_ms: when it is
--         changed; most: rows of a form, the oldest go; most_of_person: answers of one person; answers: question, JSON, …,
--         none to delete the row
-- RETURNS "done", "none" if there was no row to delete, "full" if the person has too many answers; a repeat of the step returns
--         the first reply
-- EVENTS  none

local ROW_END = '\31' -- behind the name of a row, before that of a question

local function answers_of(key, prefix)
  local found = {}
  for _, field in ipairs(redis_call('HKEYS', key)) do
    if string.sub(field, 1, #prefix) == prefix and (prefix ~= '' or not string.find(field, ROW_END, 1, true)) then
      found[#found + 1] = field
    end
  end
  return found
end

local function delete(key, people, member, prefix)
  local found = answers_of(key, prefix)
  for _, field in ipairs(found) do redis_call('HDEL', key, field) end
  redis_call('ZREM', people, member)
  return #found > 0 and 'done' or 'none'
end

local function write(key, people, member, prefix, at_ms, most_of_person, answers)
  if redis_call('HLEN', key) + #answers / 2 > most_of_person then return 'full' end
  for n = 1, #answers, 2 do redis_call('HSET', key, prefix .. answers[n], answers[n + 1]) end
  redis_call('ZADD', people, 'NX', at_ms, member)
  return 'done'
end

return function(tenant, form, row, channel, address, step, at_ms, kept_ms, step_ms, most, most_of_person, answers)
  local done = step ~= '' and redis_call('GET', Key.stepresult(tenant, step))
  if done then return done end
  local key, people = Key.form_row(tenant, channel, address, form), Key.form_people(tenant, form)
  local of = Key.forms_of(tenant, channel, address)
  local member, prefix = channel .. ':' .. address, row ~= '' and row .. ROW_END or ''
  if row ~= '' then member = member .. ROW_END .. row end
  local reply
  if #answers == 0 then reply = delete(key, people, member, prefix)
  else reply = write(key, people, member, prefix, at_ms, most_of_person, answers) end
  if step ~= '' then redis_call('SET', Key.stepresult(tenant, step), reply, 'PX', step_ms) end
  if #answers == 0 or reply ~= 'done' then return reply end
  redis_call('ZREMRANGEBYRANK', people, 0, -most - 1)
  redis_call('SADD', Key.forms(tenant), form)
  redis_call('SADD', of, form)
  for _, one in ipairs({ key, people, Key.forms(tenant), of }) do redis_call('PEXPIRE', one, kept_ms) end
  return reply
end
