-- set_variables: change variables of a person, of a chat or of the bot, once for each step
-- ARGV    tenant, scope, channel, owner, step, kept_ms:int, step_ms:int, most:int, changes:rest
--         scope: `person`, `chat` or `bot`; owner: the id of the person or the chat; most: bytes of a value;
--         changes: name, verb, value, lifetime_ms, default, times, …; value, default: JSON
--         verb: set, add, clear; if_empty: set if it has its default; remove: the first equal element of a list;
--         append: one more element, with times > 0 only if fewer elements are equal to it
-- RETURNS ["set", name, value, …] with the values after the changes, "" for none; a repeat of the step returns the first reply;
--         ["full", name] if a value would be too large, ["taken", name] if `if_empty` or `append` does not apply: nothing was
--         changed
-- EVENTS  none
-- INVARIANT a step changes a variable once, however often it is repeated; the record is kept as long as its longest value

local function appended(list, element)
  if list == '[]' then return '[' .. element .. ']' end
  return string.sub(list, 1, -2) .. ',' .. element .. ']'
end

-- The elements of a JSON list as they are written.
local function elements(list)
  local found, depth, from, at, is_quoted = {}, 0, 2, 2, false
  while at < #list do
    local char = string.sub(list, at, at)
    if is_quoted and char == '\\' then at = at + 1
    elseif char == '"' then is_quoted = not is_quoted
    elseif not is_quoted and (char == '[' or char == '{') then depth = depth + 1
    elseif not is_quoted and (char == ']' or char == '}') then depth = depth - 1
    elseif not is_quoted and char == ',' and depth == 0 then
      found[#found + 1], from = string.sub(list, from, at - 1), at + 1
    end
    at = at + 1
  end
  if from < #list then found[#found + 1] = string.sub(list, from, -2) end
  return found
end

-- Whether two elements are equal: a number is equal to the text that shows it.
local function is_same(one, other)
  return (string.match(one, '^"(%-?%d[%d.]*)"$') or one) == (string.match(other, '^"(%-?%d[%d.]*)"$') or other)
end

local function removed(list, element)
  local kept, is_found = {}, false
  for _, one in ipairs(elements(list)) do
    if is_same(one, element) and not is_found then is_found = true else kept[#kept + 1] = one end
  end
  return '[' .. table.concat(kept, ',') .. ']'
end

local function has_room(list, element, times)
  for _, one in ipairs(times > 0 and elements(list) or {}) do
    if is_same(one, element) then times = times - 1 end
    if times == 0 then return false end
  end
  return true
end

-- The value after a change, nil if the change does not apply.
local function after(verb, current, value, default, times)
  if verb == 'add' then return string.format('%.15g', (tonumber(current) or 0) + tonumber(value)) end
  if verb == 'if_empty' then return current == default and value or nil end
  local list = string.sub(current, 1, 1) == '[' and current or '[]'
  if verb == 'append' then return has_room(list, value, times) and appended(list, value) or nil end
  if verb == 'remove' then return removed(list, value) end
  return value
end

return function(tenant, scope, channel, owner, step, kept_ms, step_ms, most, changes)
  local done = redis_call('GET', Key.stepresult(tenant, step))
  if done then return cjson.decode(done) end
  local key = scope == 'person' and Key.person(tenant, channel, owner) or Key.chat_variables(tenant, channel, owner)
  local reply, longest = { 'set' }, math.max(kept_ms, redis_call('PTTL', key))
  local written = {}
  for n = 1, #changes, 6 do
    local name, verb, value, lifetime, default, times = unpack(changes, n, n + 5)
    local ends, current = string.match(redis_call('HGET', key, 'var:' .. name) or '', '^(%d+) (.*)$')
    if not current or (tonumber(ends) > 0 and tonumber(ends) <= now) then current = default end
    local new = ''
    if verb ~= 'clear' then new = after(verb, written[name] or current, value, default, tonumber(times)) end
    if not new then return { 'taken', name } end
    if #new > most then return { 'full', name } end
    written[name] = new
    local till = tonumber(lifetime) > 0 and now + tonumber(lifetime) or 0
    changes[n + 2] = new ~= '' and string.format('%.0f', till) .. ' ' .. new or ''
    longest = math.max(longest, tonumber(lifetime))
    reply[#reply + 1], reply[#reply + 2] = name, new
  end
  for n = 1, #changes, 6 do
    local field, text = 'var:' .. changes[n], changes[n + 2]
    if text == '' then redis_call('HDEL', key, field) else redis_call('HSET', key, field, text) end
  end
  if redis_call('EXISTS', key) == 1 then redis_call('PEXPIRE', key, longest) end
  redis_call('SET', Key.stepresult(tenant, step), cjson.encode(reply), 'PX', step_ms)
  return reply
end
