-- write_buffer: a call that changes many tasks gathers its writes until its end
-- One command with many members costs less than many commands, in the server and in the append-only file. A gathered write is not read
-- again before it is written, except by functions that look here first: `heads` of lanes, `offers` by key, and tasks (record.lua).

function WriteBuffer.gather()
  WriteBuffer.gathered = {
    sums = {}, commands = {}, latest = {}, texts = {}, freed = {}, deleted = {}, heads = {}, offers = {}, kinds = {},
  }
end

-- Adds to the count `name` of a tube.
function WriteBuffer.add_up(key, tube, name, n)
  if not WriteBuffer.gathered then return redis_call('HINCRBY', key, tube .. ':' .. name, n) end
  local tubes = WriteBuffer.gathered.sums[key] or {}
  WriteBuffer.gathered.sums[key] = tubes
  local sums = tubes[tube] or {}
  tubes[tube] = sums
  sums[name] = (sums[name] or 0) + n
end

function WriteBuffer.add_words(words, one, other)
  words[#words + 1] = one
  words[#words + 1] = other
end

-- Calls a command of one key with many members, in parts: Lua's `unpack` passes some thousand words at most.
local WORDS = 1000
local function call_in_parts(command, key, words)
  for n = 1, #words, WORDS do redis_call(command, key, unpack(words, n, math.min(n + WORDS - 1, #words))) end
end

-- Adds or removes a member of a sorted set: `write('ZREM', key, id)`, `write('ZADD', key, score, id)`.
function WriteBuffer.write(command, key, ...)
  if not WriteBuffer.gathered then return redis_call(command, key, ...) end
  local name = command .. key
  local words = WriteBuffer.gathered.latest[name]
  if not words or #words > WORDS then
    words = { command, key }
    WriteBuffer.gathered.latest[name] = words
    table.insert(WriteBuffer.gathered.commands, words)
  end
  WriteBuffer.add_words(words, ...)
end

-- Returns the first tasks of a tube's lanes: `known` by lane (false: the lane is empty), and the lanes whose first task has `moved`.
function WriteBuffer.heads_in(tube)
  local heads = WriteBuffer.gathered.heads[tube] or { known = {}, moved = {} }
  WriteBuffer.gathered.heads[tube] = heads
  return heads
end

function WriteBuffer.learn_heads(tube, lanes)
  local found = redis_call('HMGET', Key.head(tube), unpack(lanes))
  local known = WriteBuffer.heads_in(tube).known
  for n, lane in ipairs(lanes) do
    if known[lane] == nil then known[lane] = found[n] end
  end
end

local function write_heads(tube, heads)
  for lane in pairs(heads.moved) do
    local id = heads.known[lane]
    if id then WriteBuffer.write('HSET', Key.head(tube), lane, id) else WriteBuffer.write('HDEL', Key.head(tube), lane) end
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

local function write_texts(texts)
  local words = { 'MSET' }
  for id, text in pairs(texts) do
    WriteBuffer.add_words(words, Key.task(id), text)
    if #words > WORDS then
      redis_call(unpack(words))
      words = { 'MSET' }
    end
  end
  if #words > 1 then redis_call(unpack(words)) end
end

local function write_sums(all)
  for key, tubes in pairs(all) do
    for tube, sums in pairs(tubes) do
      for name, n in pairs(sums) do
        if n ~= 0 then redis_call('HINCRBY', key, tube .. ':' .. name, n) end
      end
    end
  end
end

function WriteBuffer.drop_kind(kind)
  if redis_call('EXISTS', Key.by('kind', kind)) == 0 then redis_call('ZREM', Key.kinds(), kind) end
end

function WriteBuffer.write_gathered()
  local all = WriteBuffer.gathered
  for tube, heads in pairs(all.heads) do write_heads(tube, heads) end
  WriteBuffer.gathered = false
  write_texts(all.texts)
  write_sums(all.sums)
  for _, words in ipairs(all.commands) do redis_call(unpack(words)) end
  for key, members in pairs(all.offers) do write_offers(key, members) end
  if all.freed[1] then
    call_in_parts('HDEL', Key.taken(), all.freed)
    call_in_parts('ZREM', Key.lease(), all.freed)
  end
  for n = 1, #all.deleted, WORDS do redis_call('DEL', unpack(all.deleted, n, math.min(n + WORDS - 1, #all.deleted))) end
  for kind in pairs(all.kinds) do WriteBuffer.drop_kind(kind) end
end

-- A new call forgets what a call that failed has gathered.
function WriteBuffer.begin()
  WriteBuffer.gathered = false
end
