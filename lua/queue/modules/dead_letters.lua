-- dead_letters: buried tasks in groups of one tube, kind and error, so that operators see and kick them together
-- A group is `tube<tab>kind<tab>error`. Numbers and long hexadecimal words in an error stand for many: they become `#`. A status of HTTP
-- stays, as in `status 503`, `answered 410` and `HTTP 404`: it says what happened.

local LONGEST = 120

local STATUS = { status = true, http = true, code = true, answered = true, redirect = true }

local function without_number(word, between, number)
  if #number == 3 and STATUS[string.lower(word)] then return nil end
  return word .. between .. '#'
end

-- Returns the first line of an error as the name of a group, without a character that is cut in two.
local function named(text)
  local line = string.gsub(string.match(text, '^[^\r\n]*'), '%x%x%x%x%x%x%x%x+', '#')
  line = string.gsub(string.gsub(line, '(%a*)([ :=]*)(%d+)', without_number), '%c', ' ')
  if #line <= LONGEST then return line end
  return (string.gsub(string.sub(line, 1, LONGEST), '[\192-\255][\128-\191]*$', ''))
end

function DeadLetters.group_of(id, task)
  local text = Damaged.peek_hash(Key.progress(id), 'error')[1] or ''
  return string.gsub(task.tube, '%c', ' ') .. '\t' .. string.gsub(task.kind or '', '%c', ' ') .. '\t' .. named(text)
end

-- The list of the groups has their sizes.
function DeadLetters.list(group)
  local size = redis_call('ZCARD', Key.dead_letter(group))
  if size > 0 then redis_call('ZADD', Key.dead_letters(), size, group) else redis_call('ZREM', Key.dead_letters(), group) end
end

-- The group stays with the task, because the error may change before it leaves.
function DeadLetters.enter(id, task, at)
  local group = DeadLetters.group_of(id, task)
  redis_call('HSET', Key.progress(id), 'group', group)
  redis_call('ZADD', Key.dead_letter(group), at, id)
  DeadLetters.list(group)
end

function DeadLetters.leave(id)
  local group = Damaged.peek_hash(Key.progress(id), 'group')[1]
  if not group then return end
  redis_call('HDEL', Key.progress(id), 'group')
  redis_call('ZREM', Key.dead_letter(group), id)
  DeadLetters.list(group)
end
