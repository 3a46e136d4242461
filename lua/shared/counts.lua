-- counts: the order of submission, transitions by tube, tasks by state
-- USES    write_buffer

local function next_order() return redis.call('HINCRBY', counters_key(), 'order', 1) end

local function count(tube, transition, n) add_up(counters_key(), tube .. ':' .. transition, n or 1) end

-- How many tasks are in which state now, so that statistics read no task (K-35).
local function tally(tube, state, n) add_up(states_key(), tube .. ':' .. state, n) end
