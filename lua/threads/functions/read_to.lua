-- read_to: mark the messages of a thread as read, up to one of them
-- ARGV    id, tenant, inbox, number:int
-- RETURNS how many messages of the person are unread behind it
-- EVENTS  none

return function(id, tenant, inbox, number)
  local thread = Key.thread(id)
  local last = tonumber(redis_call('HGET', thread, 'messages') or '0')
  local unread = 0
  for place = last, math.max(number, last - tonumber(redis_call('HGET', thread, 'unread') or '0')) + 1, -1 do
    if string.match(redis_call('HGET', thread, 'message:' .. place) or '', '^%d+ person ') then unread = unread + 1 end
  end
  if last > 0 then redis_call('HSET', thread, 'unread', unread) end
  if unread == 0 then redis_call('ZREM', Key.unread_threads(tenant, inbox), id) end
  return unread
end
