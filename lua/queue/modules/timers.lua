-- timers: the moments at which something is due, and the key of the worker that keeps the timer

-- Returns the first moment at which a timer has something to do, or false.
function Timers.next_moment()
  local first = false
  for _, index in ipairs({ Key.due(), Key.lease(), Key.expires() }) do
    local head = redis_call('ZRANGE', index, 0, 0, 'WITHSCORES')[2]
    if head and (not first or tonumber(head) < first) then first = tonumber(head) end
  end
  return first
end

-- Returns the owner of the worker that keeps the timer, or false.
function Timers.keeper()
  local text = redis_call('GET', Key.timer())
  return text and (string.match(text, '^(.*) %-?%d+$') or text)
end

-- Call it before a moment enters an index: if it comes first, the timer's key is deleted, which wakes the worker that keeps the timer
-- and no other.
function Timers.new_moment(at)
  local head = redis_call('ZRANGE', Key.due(), 0, 0, 'WITHSCORES')[2]
  if not head or at < tonumber(head) then redis_call('DEL', Key.timer()) end
end

function Timers.await_moment(at, member)
  Timers.new_moment(at)
  redis_call('ZADD', Key.due(), at, member)
end
