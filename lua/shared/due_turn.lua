-- due_turn: releases a delivery that is due now, while earlier due deliveries still wait for a courier
-- USES    timers, plan, parcels, due

-- In a lane the earlier ones come first: one page of them is released now; behind more than a page this delivery stays scheduled.
-- Returns its state and due moment.
local function release_in_turn(suffix)
  if facts_of(suffix).lane and tick() then
    local due = now + 1
    redis.call('HSET', history_key(suffix), 'due', due)
    await_moment(due, order_member(suffix))
    return 'scheduled', due
  end
  release_delivery(suffix)
  return 'released', now
end
