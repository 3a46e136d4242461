-- find_received: find the delivery of a message that an address has received
-- ARGV    tenant, channel, address, reference
--         reference: the provider's id of the message
-- RETURNS `<history> <recipient number>`, "" if it is not known
-- EVENTS  none

return function(tenant, channel, address, reference)
  for _, text in ipairs(redis_call('ZRANGE', Key.received(tenant, channel, address), 0, -1, 'REV')) do
    local found, rest = Received.split(text)
    if found == reference then return rest end
  end
  for _, page in ipairs(Received.pages(tenant, channel, address)) do
    local rest = redis_call('HGET', page, reference)
    if rest then return rest end
  end
  return ''
end
