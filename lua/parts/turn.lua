-- turn: a delivery whose moment is now, while others that fell due before are still waiting for a courier

-- In a lane they come first, a page of them at most.
local function release_in_turn(suffix)
  if facts_of(suffix).lane then tick() end
  release_delivery(suffix)
end
