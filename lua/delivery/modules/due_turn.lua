-- due_turn: releases a delivery that is due now, while earlier due deliveries still wait for a courier

-- In a lane the earlier ones come first: one page of them is released now; behind more than a page this delivery stays scheduled.
-- Returns its state and due moment.
function DueTurn.release_in_turn(suffix)
  if Parcels.facts_of(suffix).lane and Due.tick() then
    local due = now + 1
    redis_call('HSET', Key.history(suffix), 'due', due)
    Timers.await_moment(due, Plan.order_member(suffix))
    return 'scheduled', due
  end
  Parcels.release_delivery(suffix)
  return 'released', now
end
