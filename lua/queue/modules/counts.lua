-- counts: the order of submission, transitions by tube, tasks by state

function Counts.next_order() return redis_call('HINCRBY', Key.counters(), 'order', 1) end

-- `n`: 1 by default; `n` may be left out.
function Counts.count(tube, transition, n) WriteBuffer.add_up(Key.counters(), tube, transition, n or 1) end

-- How many tasks are in which state now, so that statistics read no task (K-35).
function Counts.tally(tube, state, n) WriteBuffer.add_up(Key.states(), tube, state, n) end
