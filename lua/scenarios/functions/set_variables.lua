-- set_variables: change variables of a person or a chat, once for each step
-- ARGV    tenant, scope, channel, owner, step, kept_ms:int, step_ms:int, most:int, changes:rest
--         scope: `person` or `chat`; owner: the id of the person or the chat; most: bytes of a value;
--         changes: name, verb, value, lifetime_ms, default, …; verb: set, add, append or clear; value, default: JSON
-- RETURNS ["set", name, value, …] with the values after the changes, "" for none; a repeat of the step returns the first reply;
--         ["full", name] if a value would be too large: nothing was changed
-- EVENTS  none
-- INVARIANT a step changes a variable once, however often it is repeated; the record is kept as long as its longest value

local function appended(list, element)
  if list == '[]' or string.sub(list, 1, 1) ~= '[' then return '[' .. element .. ']' end
  return string.sub(list, 1, -2) .. ',' .. element .. ']'
end

local function after(verb, current, value)
  if verb == 'add' then return string.format('%.15g', (tonumber(current) or 0) + tonumber(value)) end
  if verb == 'append' then return appended(current, value) end
  return value
end

return function(tenant, scope, channel, owner, step, kept_ms, step_ms, most, changes)
  local done = redis_call('GET', Key.stepresult(tenant, step))
  if done then return cjson.decode(done) end
  local key = scope == 'person' and Key.person(tenant, channel, owner) or Key.chat_variables(tenant, channel, owner)
  local reply, longest = { 'set' }, math.max(kept_ms, redis_call('PTTL', key))
  local written = {}
  for n = 1, #changes, 5 do
    local name, verb, value, lifetime, default = unpack(changes, n, n + 4)
    local ends, current = string.match(redis_call('HGET', key, 'var:' .. name) or '', '^(%d+) (.*)$')
    if not current or (tonumber(ends) > 0 and tonumber(ends) <= now) then current = default end
    local new = verb ~= 'clear' and after(verb, written[name] or current, value) or ''
    if #new > most then return { 'full', name } end
    written[name] = new
    local till = tonumber(lifetime) > 0 and now + tonumber(lifetime) or 0
    changes[n + 2] = new ~= '' and string.format('%.0f', till) .. ' ' .. new or ''
    longest = math.max(longest, tonumber(lifetime))
    reply[#reply + 1], reply[#reply + 2] = name, new
  end
  for n = 1, #changes, 5 do
    local field, text = 'var:' .. changes[n], changes[n + 2]
    if text == '' then redis_call('HDEL', key, field) else redis_call('HSET', key, field, text) end
  end
  if redis_call('EXISTS', key) == 1 then redis_call('PEXPIRE', key, longest) end
  redis_call('SET', Key.stepresult(tenant, step), cjson.encode(reply), 'PX', step_ms)
  return reply
end
