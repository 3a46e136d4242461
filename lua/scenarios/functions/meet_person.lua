-- meet_person: note what an event shows about a person, and read the person's state
-- ARGV    tenant, channel, user, chat, kept_ms:int, names:rest
--         chat: its id, "" if there is none; names: field, text, field, text, …; an empty text removes the field
-- RETURNS the person's state, "" if there is none
-- EVENTS  none
-- INVARIANT the record is kept as long as its state; a username leads to the person who was last seen with it; the newest 20 chats are kept

return function(tenant, channel, user, chat, kept_ms, names)
  local key = Key.person(tenant, channel, user)
  local had, chats, state, ends = unpack(redis_call('HMGET', key, 'username', 'chats', 'state', 'until'))

  local function username_of(name) return Key.username(tenant, channel, string.lower(name)) end

  local function rename(name)
    if had and had ~= name and redis_call('GET', username_of(had)) == user then redis_call('DEL', username_of(had)) end
    if name ~= '' then redis_call('SET', username_of(name), user, 'PX', kept_ms) end
  end

  for n = 1, #names, 2 do
    local field, text = names[n], names[n + 1]
    if field == 'username' then rename(text) end
    if text == '' then redis_call('HDEL', key, field) else redis_call('HSET', key, field, text) end
  end

  if chat ~= '' then
    local newest = { chat }
    for known in string.gmatch(chats or '', '%S+') do
      if known ~= chat and #newest < 20 then newest[#newest + 1] = known end
    end
    redis_call('HSET', key, 'chats', table.concat(newest, ' '))
  end
  redis_call('ZADD', Key.people(tenant), now, channel .. ':' .. user)
  redis_call('ZREMRANGEBYSCORE', Key.people(tenant), '-inf', now - kept_ms)
  redis_call('PEXPIRE', Key.people(tenant), kept_ms)
  redis_call('HSETNX', key, 'first', string.format('%.0f', now))
  redis_call('HSET', key, 'last', string.format('%.0f', now))
  -- A state or a variable may last longer than the record is kept without one.
  redis_call('PEXPIRE', key, math.max(kept_ms, (tonumber(ends) or 0) - now, redis_call('PTTL', key)))
  return state and tonumber(ends) > now and state or ''
end
