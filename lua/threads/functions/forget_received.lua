-- forget_received: delete which messages an address has received
-- ARGV    tenant, channel, address
-- RETURNS 1
-- EVENTS  none

return function(tenant, channel, address)
  redis_call('DEL', Key.received(tenant, channel, address), unpack(Received.pages(tenant, channel, address)))
  return 1
end
