-- add_to_thread: add a message to the thread of an inbox with a person; the first message opens the thread
-- ARGV    packed: id, tenant, inbox, event, side, message, facts, most
--         event: names what the author did, without spaces; side: person or staff; message: JSON; facts: field, value, … of the
--         thread, which replace those before; most: the newest messages that are kept. A thread lives for the setting
--         threads_ms after its last message. What a muted person writes is not unread. The stream of thread events
--         gets an entry without the words.
-- RETURNS ["added", number of the message, its ms, 1 if the person is muted else 0]; "repeated" for an event that was added before
-- EVENTS  none
-- INVARIANT I31 a message is in one thread, once

local function drop_message(thread, number)
  local stored = redis_call('HGET', thread, 'message:' .. number)
  if stored then redis_call('HDEL', thread, 'message:' .. number, 'event:' .. string.match(stored, '^%d+ %S+ (%S+)')) end
end

return function(id, tenant, inbox, event, side, message, facts, most)
  local thread = Key.thread(id)
  local muted = redis_call('HEXISTS', thread, 'muted')
  local kept_ms = redis_call('HGET', Key.settings(), 'threads_ms') or string.format('%.0f', 400 * DAY_MS)
  local known = redis_call('HGET', thread, 'event:' .. event)
  if known then
    return { 'repeated', known, string.match(redis_call('HGET', thread, 'message:' .. known) or '0', '^%d+'), muted }
  end
  local number = redis_call('HINCRBY', thread, 'messages', 1)
  local stored = string.format('%.0f', now) .. ' ' .. side .. ' ' .. event .. ' ' .. message
  redis_call('HSET', thread, 'tenant', tenant, 'inbox', inbox, 'last', now, 'event:' .. event, number, 'message:' .. number, stored,
    unpack(facts))
  drop_message(thread, number - most)
  if side == 'person' and muted == 0 then
    redis_call('HINCRBY', thread, 'unread', 1)
    redis_call('ZADD', Key.unread_threads(tenant, inbox), now, id)
  elseif side ~= 'person' then
    redis_call('HSET', thread, 'unread', 0)
    redis_call('HDEL', thread, 'answering')
    redis_call('ZREM', Key.unread_threads(tenant, inbox), id)
  end
  redis_call('ZADD', Key.inbox(tenant, inbox), now, id)
  for _, list in ipairs({ Key.inbox(tenant, inbox), Key.unread_threads(tenant, inbox) }) do
    redis_call('ZREMRANGEBYSCORE', list, '-inf', now - kept_ms) -- of threads that are over
    redis_call('PEXPIRE', list, kept_ms)
  end
  redis_call('PEXPIRE', thread, kept_ms)
  ThreadEvents.announce(id, tenant, inbox, number, side)
  return { 'added', number, string.format('%.0f', now), muted }
end
