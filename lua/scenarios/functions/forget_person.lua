-- forget_person: delete what bots have stored of a person in a channel: record, @name, questions, runs
-- ARGV    tenant, channel, address
-- RETURNS how many runs were deleted; the caller calls again until there are none
-- EVENTS  none
-- INVARIANT no @name leads to a person that is deleted

return function(tenant, channel, address)
  local person = Key.person(tenant, channel, address)
  local username, chats = unpack(redis_call('HMGET', person, 'username', 'chats'))
  local named = username and Key.username(tenant, channel, string.lower(username))
  if named and redis_call('GET', named) == address then redis_call('DEL', named) end
  for chat in string.gmatch(address .. ' ' .. (chats or ''), '%S+') do
    redis_call('DEL', Key.question(tenant, channel, address, chat))
  end
  redis_call('DEL', person, Key.chat_variables(tenant, channel, address), Key.choices(tenant, channel, address))
  redis_call('DEL', Key.buttons(tenant, channel, address), Key.replies(tenant, channel, address))
  redis_call('DEL', Key.answer_numbers(tenant, channel, address))
  redis_call('ZREM', Key.people(tenant), channel .. ':' .. address)
  return Runs.forget_person(tenant, channel .. ':' .. address)
end
