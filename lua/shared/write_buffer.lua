-- write_buffer: a script of many tasks gathers its writes until its end
-- One command with many members costs less than many commands, in the server and in the append-only file. A gathered write is not read
-- again before it is written, except by functions that look here first: `gone` tasks, `fronts` of lanes, `offers` by key.

local gathered = false
local function gather()
  gathered = { sums = {}, commands = {}, gone = {}, deleted = {}, fronts = {}, offers = {}, kinds = {} }
end

local function add_up(key, field, n)
  if not gathered then return redis.call('HINCRBY', key, field, n) end
  local sums = gathered.sums[key] or {}
  gathered.sums[key] = sums
  sums[field] = (sums[field] or 0) + n
end

local function add_words(words, one, other)
  words[#words + 1] = one
  words[#words + 1] = other
end

-- Adds or removes a member of a sorted set: `write('ZREM', key, id)`, `write('ZADD', key, score, id)`. Lua's `unpack` passes some
-- thousand words at most.
local WORDS = 1000
local function write(command, key, ...)
  if not gathered then return redis.call(command, key, ...) end
  local name = command .. key
  local words = gathered.commands[name]
  if words and #words > WORDS then
    redis.call(unpack(words))
    words = nil
  end
  if not words then
    words = { command, key }
    gathered.commands[name] = words
  end
  add_words(words, ...)
end

local function forget(id)
  if not gathered then return redis.call('DEL', task_key(id)) end
  gathered.gone[id] = true
  gathered.deleted[#gathered.deleted + 1] = task_key(id)
end

-- Returns the first tasks of a tube's lanes: `known` by lane (false: the lane is empty), and the lanes whose first task has `moved`.
local function fronts_in(tube)
  local fronts = gathered.fronts[tube] or { known = {}, moved = {} }
  gathered.fronts[tube] = fronts
  return fronts
end

local function learn_fronts(tube, lanes)
  local found = redis.call('HMGET', front_key(tube), unpack(lanes))
  local known = fronts_in(tube).known
  for n, lane in ipairs(lanes) do
    if known[lane] == nil then known[lane] = found[n] end
  end
end

local function write_fronts(tube, fronts)
  for lane in pairs(fronts.moved) do
    local id = fronts.known[lane]
    if id then write('HSET', front_key(tube), lane, id) else write('HDEL', front_key(tube), lane) end
  end
end

local function write_offers(key, members)
  local words = { 'ZADD', key }
  for member, score in pairs(members) do
    add_words(words, score, member)
    if #words > WORDS then
      redis.call(unpack(words))
      words = { 'ZADD', key }
    end
  end
  if #words > 2 then redis.call(unpack(words)) end
end

local function drop_kind(kind)
  if redis.call('EXISTS', by_key('kind', kind)) == 0 then redis.call('ZREM', kinds_key(), kind) end
end

local function write_gathered()
  local all = gathered
  for tube, fronts in pairs(all.fronts) do write_fronts(tube, fronts) end
  gathered = false
  for key, sums in pairs(all.sums) do
    for field, n in pairs(sums) do
      if n ~= 0 then redis.call('HINCRBY', key, field, n) end
    end
  end
  for _, words in pairs(all.commands) do redis.call(unpack(words)) end
  for key, members in pairs(all.offers) do write_offers(key, members) end
  if #all.deleted > 0 then redis.call('DEL', unpack(all.deleted)) end
  for kind in pairs(all.kinds) do drop_kind(kind) end
end
