-- damaged: a key that another program has overwritten is set aside under another name, so that it stops nothing else

function Damaged.set_aside(key)
  redis.log(redis.LOG_WARNING, 'Ada: ' .. key .. ' has another type and is set aside; ./ada audit --repair')
  redis_call('RENAME', key, Key.damaged(key))
end

function Damaged.is_wrong_type(reply)
  if type(reply) ~= 'table' or not reply.err then return false end
  if not string.find(reply.err, 'WRONGTYPE', 1, true) then error(reply.err) end
  return true
end

-- Returns a string, or false if there is no such key. A key of another type is set aside.
function Damaged.read_text(key)
  local text = redis_pcall('GET', key)
  if not Damaged.is_wrong_type(text) then return text end
  Damaged.set_aside(key)
  return false
end

-- Returns the fields of a hash; each is false if there is no such key. If the key has another type, all are false, and the second
-- result is true.
function Damaged.peek_hash(key, ...)
  local fields = redis_pcall('HMGET', key, ...)
  if not Damaged.is_wrong_type(fields) then return fields end
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
