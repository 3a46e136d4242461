-- timers: the moments at which something is due, and the key of the worker that keeps the timer

-- Returns the first moment at which a timer has something to do, or false.
local function next_moment()
  local first = false
  for _, index in ipairs({ due_key(), lease_key(), expires_key() }) do
    local head = redis.call('ZRANGE', index, 0, 0, 'WITHSCORES')[2]
    if head and (not first or tonumber(head) < first) then first = tonumber(head) end
  end
  return first
end

-- Call it before a moment enters an index: if it comes first, the timer's key is deleted, which wakes the worker that keeps the timer
-- and no other.
local function new_moment(at)
  local head = redis.call('ZRANGE', due_key(), 0, 0, 'WITHSCORES')[2]
  if not head or at < tonumber(head) then redis.call('DEL', timer_key()) end
end

local function await_moment(at, member)
  new_moment(at)
  redis.call('ZADD', due_key(), at, member)
end
