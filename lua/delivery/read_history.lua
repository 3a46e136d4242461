-- read_history: read fields of a history and outcomes of its recipients in one atomic step
-- ARGV    suffix, count:int, names:rest
--         names: `count` fields of the history, then fields of the outcomes
-- RETURNS the values in the order of the names; false for a missing one
-- EVENTS  none

local values = {}

local function read(key, from, to)
  for start = from, to, 1000 do
    local last = math.min(start + 999, to)
    for n, value in ipairs(redis.call('HMGET', key, unpack(names, start, last))) do values[start + n - 1] = value end
  end
end

read(history_key(suffix), 1, count)
read(outcomes_key(suffix), count + 1, #names)
return values
