-- repair_tally: writes the counts of a tube from a recount, if they have not changed since
-- ARGV    tube, seen:json, wanted:json
--         seen, wanted: {"counters": {name: number}, "states": {name: number}}
-- RETURNS one line for each change; none if the tube changed since
-- EVENTS  none
-- INVARIANT I7

return function(tube, seen, wanted)
  local hashes = { counters = Key.counters(), states = Key.states() }
  local function number_of(hash, name) return tonumber(redis_call('HGET', hashes[hash], tube .. ':' .. name) or '0') end

  for hash, numbers in pairs(seen) do
    for name, number in pairs(numbers) do
      if number_of(hash, name) ~= number then return Repair.changes end
    end
  end
  for hash, numbers in pairs(wanted) do
    for name, number in pairs(numbers) do
      local before = number_of(hash, name)
      if before ~= number then
        redis_call('HSET', hashes[hash], tube .. ':' .. name, number)
        Repair.note(string.format('%s from %.0f to %.0f', name, before, number))
      end
    end
  end
  return Repair.changes
end
