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

-- Returns the owner of the worker that keeps the timer, or false, and the moment for which it waits: infinite for none.
function Timers.keeper()
  local owner, moment = string.match(redis_call('GET', Key.timer()) or '', '^(.*) (%-?%d+)$')
  moment = tonumber(moment or '-1')
  return owner or false, moment < 0 and math.huge or moment
end

-- Call it when a moment enters an index: if the keeper of the timer waits for a later one, the timer's key is deleted, which wakes that
-- worker and no other.
function Timers.new_moment(at)
  local _, moment = Timers.keeper()
  if at < moment then redis_call('DEL', Key.timer()) end
end

function Timers.await_moment(at, member)
  Timers.new_moment(at)
  redis_call('ZADD', Key.due(), at, member)
end

function Timers.await_expiry(at, id)
  Timers.new_moment(at)
  redis_call('ZADD', Key.expires(), at, id)
end
