-- forget_thread: delete a thread with all its messages
-- ARGV    id, tenant, inbox
-- RETURNS 1
-- EVENTS  none

return function(id, tenant, inbox)
  redis_call('DEL', Key.thread(id))
  redis_call('ZREM', Key.inbox(tenant, inbox), id)
  redis_call('ZREM', Key.unread_threads(tenant, inbox), id)
  return 1
end
