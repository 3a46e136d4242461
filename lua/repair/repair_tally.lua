-- repair_tally: writes the counts of a tube from a recount, if they have not changed since
-- ARGV    tube, seen:json, wanted:json
--         seen, wanted: {"counters": {name: number}, "states": {name: number}}
-- USES    repair
-- RETURNS one line for each change; none if the tube changed since
-- EVENTS  none
-- INVARIANT I7

local hashes = { counters = counters_key(), states = states_key() }
local function number_of(hash, name) return tonumber(redis.call('HGET', hashes[hash], tube .. ':' .. name) or '0') end

for hash, numbers in pairs(seen) do
  for name, number in pairs(numbers) do
    if number_of(hash, name) ~= number then return changes end
  end
end
for hash, numbers in pairs(wanted) do
  for name, number in pairs(numbers) do
    local before = number_of(hash, name)
    if before ~= number then
      redis.call('HSET', hashes[hash], tube .. ':' .. name, number)
      note(string.format('%s from %.0f to %.0f', name, before, number))
    end
  end
end
return changes
