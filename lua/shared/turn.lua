-- turn: a delivery whose moment is now, while others that fell due before are still waiting for a courier

-- In a lane they come first: a page of them now; behind more than that it waits its turn like them. Answers its state and moment.
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
