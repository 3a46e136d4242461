-- mark_thread: mute the person of a thread, end that, or hide the thread until its person writes again
-- ARGV    id, tenant, inbox, mark
--         mark: mute, unmute or hide
-- RETURNS 1, or 0 if there is no such thread
-- EVENTS  none

return function(id, tenant, inbox, mark)
  local thread = Key.thread(id)
  if redis_call('EXISTS', thread) == 0 then return 0 end
  if mark == 'unmute' then
    redis_call('HDEL', thread, 'muted')
    return 1
  end
  if mark == 'mute' then redis_call('HSET', thread, 'muted', '1') end
  if mark == 'hide' then redis_call('ZREM', Key.inbox(tenant, inbox), id) end
  redis_call('HSET', thread, 'unread', 0)
  redis_call('ZREM', Key.unread_threads(tenant, inbox), id)
  return 1
end
