-- note_received: note which messages an address has received, for replies that come later
-- ARGV    kept_ms:int, most:int, received:json
--         received: [[tenant, channel, address, message, …], …]; message: a text that is returned as it is; most: the newest that are kept
-- RETURNS 1
-- EVENTS  none

return function(kept_ms, most, received)
  for _, one in ipairs(received) do
    local key = Key.received(one[1], one[2], one[3])
    for place = 4, #one do redis_call('ZADD', key, now, one[place]) end
    redis_call('ZREMRANGEBYRANK', key, 0, -most - 1)
    redis_call('PEXPIRE', key, kept_ms)
  end
  return 1
end
