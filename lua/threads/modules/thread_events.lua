-- thread_events: the stream of what happens in threads, which open consoles follow

local EVENTS_KEPT_MS = 3600000

-- Announces that a message was added to a thread, or that somebody has begun to answer it. `number`: of its newest message; `side`: person,
-- staff, or answering.
function ThreadEvents.announce(thread, tenant, inbox, number, side)
  local entry = { 'tenant', tenant, 'inbox', inbox, 'thread', thread, 'number', number, 'side', side }
  redis_call('XADD', Key.thread_events(), 'MAXLEN', '~', 1000, '*', unpack(entry))
  redis_call('PEXPIRE', Key.thread_events(), EVENTS_KEPT_MS)
end
