-- write_buffer: a script of many tasks gathers its writes until its end
-- One command with many members costs less than many commands, in the server and in the append-only file. A gathered write is not read
-- again before it is written, except by functions that look here first: `gone` tasks, `fronts` of lanes, `offers` by key.

function WriteBuffer.gather()
  WriteBuffer.gathered = { sums = {}, commands = {}, gone = {}, deleted = {}, fronts = {}, offers = {}, kinds = {} }
end

function WriteBuffer.add_up(key, field, n)
  if not WriteBuffer.gathered then return redis_call('HINCRBY', key, field, n) end
  local sums = WriteBuffer.gathered.sums[key] or {}
  WriteBuffer.gathered.sums[key] = sums
  sums[field] = (sums[field] or 0) + n
end

function WriteBuffer.add_words(words, one, other)
  words[#words + 1] = one
  words[#words + 1] = other
end

-- Adds or removes a member of a sorted set: `write('ZREM', key, id)`, `write('ZADD', key, score, id)`. Lua's `unpack` passes some
-- thousand words at most.
local WORDS = 1000
function WriteBuffer.write(command, key, ...)
  if not WriteBuffer.gathered then return redis_call(command, key, ...) end
  local name = command .. key
  local words = WriteBuffer.gathered.commands[name]
  if words and #words > WORDS then
    redis_call(unpack(words))
    words = nil
  end
  if not words then
    words = { command, key }
    WriteBuffer.gathered.commands[name] = words
  end
  WriteBuffer.add_words(words, ...)
end

function WriteBuffer.forget(id)
  if not WriteBuffer.gathered then return redis_call('DEL', Key.task(id)) end
  local gone, deleted = WriteBuffer.gathered.gone, WriteBuffer.gathered.deleted
  gone[id] = true
  deleted[#deleted + 1] = Key.task(id)
end

-- Returns the first tasks of a tube's lanes: `known` by lane (false: the lane is empty), and the lanes whose first task has `moved`.
function WriteBuffer.fronts_in(tube)
  local fronts = WriteBuffer.gathered.fronts[tube] or { known = {}, moved = {} }
  WriteBuffer.gathered.fronts[tube] = fronts
  return fronts
end

function WriteBuffer.learn_fronts(tube, lanes)
  local found = redis_call('HMGET', Key.front(tube), unpack(lanes))
  local known = WriteBuffer.fronts_in(tube).known
  for n, lane in ipairs(lanes) do
    if known[lane] == nil then known[lane] = found[n] end
  end
end

local function write_fronts(tube, fronts)
  for lane in pairs(fronts.moved) do
    local id = fronts.known[lane]
    if id then WriteBuffer.write('HSET', Key.front(tube), lane, id) else WriteBuffer.write('HDEL', Key.front(tube), lane) end
  end
end

local function write_offers(key, members)
  local words = { 'ZADD', key }
  for member, score in pairs(members) do
    WriteBuffer.add_words(words, score, member)
    if #words > WORDS then
      redis_call(unpack(words))
      words = { 'ZADD', key }
    end
  end
  if #words > 2 then redis_call(unpack(words)) end
end

function WriteBuffer.drop_kind(kind)
  if redis_call('EXISTS', Key.by('kind', kind)) == 0 then redis_call('ZREM', Key.kinds(), kind) end
end

function WriteBuffer.write_gathered()
  local all = WriteBuffer.gathered
  for tube, fronts in pairs(all.fronts) do write_fronts(tube, fronts) end
  WriteBuffer.gathered = false
  for key, sums in pairs(all.sums) do
    for field, n in pairs(sums) do
      if n ~= 0 then redis_call('HINCRBY', key, field, n) end
    end
  end
  for _, words in pairs(all.commands) do redis_call(unpack(words)) end
  for key, members in pairs(all.offers) do write_offers(key, members) end
  if #all.deleted > 0 then redis_call('DEL', unpack(all.deleted)) end
  for kind in pairs(all.kinds) do WriteBuffer.drop_kind(kind) end
end

-- What one call gathers is forgotten at the begin of the next.
function WriteBuffer.begin()
  WriteBuffer.gathered = false
end
