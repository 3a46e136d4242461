-- read_history: read fields of a history and outcomes of its recipients in one atomic step
-- ARGV    suffix, count:int, names:rest
--         names: `count` fields of the history, then fields of the outcomes
-- RETURNS the values in the order of the names; false for a missing one
-- EVENTS  none

return function(suffix, count, names)
  local values = {}

  local function read(key, from, to)
    for start = from, to, 1000 do
      local last = math.min(start + 999, to)
      for n, value in ipairs(redis_call('HMGET', key, unpack(names, start, last))) do values[start + n - 1] = value end
    end
  end

  read(Key.history(suffix), 1, count)
  read(Key.outcomes(suffix), count + 1, #names)
  return values
end
