-- damaged: a key that another program has overwritten is set aside under another name, so that it stops nothing else

function Damaged.set_aside(key)
  redis.log(redis.LOG_WARNING, 'Ada: ' .. key .. ' has another type and is set aside; ./ada audit --repair')
  redis_call('RENAME', key, Key.damaged(key))
end

-- Returns the fields of a hash; each is false if there is no such key, or one of another type (then also true).
function Damaged.peek_hash(key, ...)
  local fields = redis_pcall('HMGET', key, ...)
  if not fields.err then return fields end
  if not string.find(fields.err, 'WRONGTYPE', 1, true) then error(fields.err) end
  local none = {}
  for n = 1, select('#', ...) do none[n] = false end
  return none, true
end

-- The same, and a key of another type is set aside.
function Damaged.read_hash(key, ...)
  local fields, is_damaged = Damaged.peek_hash(key, ...)
  if is_damaged then Damaged.set_aside(key) end
  return fields
end
