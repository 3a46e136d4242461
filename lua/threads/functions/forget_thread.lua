-- forget_thread: delete a thread with all its messages, also from the stream of thread events
-- ARGV    id, tenant, inbox
-- RETURNS 1
-- EVENTS  none

local function forget_events(id)
  for _, entry in ipairs(redis_call('XRANGE', Key.thread_events(), '-', '+')) do
    for place = 1, #entry[2], 2 do
      if entry[2][place] == 'thread' and entry[2][place + 1] == id then redis_call('XDEL', Key.thread_events(), entry[1]) end
    end
  end
  if redis_call('XLEN', Key.thread_events()) == 0 then redis_call('DEL', Key.thread_events()) end
end

return function(id, tenant, inbox)
  forget_events(id)
  redis_call('DEL', Key.thread(id))
  redis_call('ZREM', Key.inbox(tenant, inbox), id)
  redis_call('ZREM', Key.unread_threads(tenant, inbox), id)
  return 1
end
