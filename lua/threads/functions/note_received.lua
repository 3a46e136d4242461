-- note_received: note which messages an address has received, for replies that come later
-- ARGV    most:int, received:json
--         most: the newest that stand in the list of an address, the others are found only by their id; received: [[tenant, channel,
--         address, message, …], …]; message: `<the provider's id> <history> <recipient number>`
-- RETURNS 1
-- EVENTS  none

return function(most, received)
  for _, one in ipairs(received) do
    local key = Key.received(one[1], one[2], one[3])
    for place = 4, #one do redis_call('ZADD', key, now, one[place]) end
    Received.move_oldest(one[1], one[2], one[3], most)
    redis_call('PEXPIRE', key, Received.kept_ms())
  end
  return 1
end
