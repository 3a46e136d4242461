-- cancel_scheduled: cancel whole deliveries that are not due yet, many at once
-- ARGV    tenant, suffixes:rest
-- RETURNS [number of deliveries cancelled, each delivery that is released, which `cancel` cancels by itself, …]
-- EVENTS  del of the order keys; for each delivery cancelled, finished
-- INVARIANT I11 a cancelled delivery is never released

return function(tenant, suffixes)
  local reply = { 0 }
  for _, suffix in ipairs(suffixes) do
    local facts = redis_call('HMGET', Key.history(suffix), 'tenant', 'state')
    if facts[1] == tenant and facts[2] == 'scheduled' then
      DeliveryEnd.withdraw(suffix)
      DeliveryEnd.finish_history(suffix)
      reply[1] = reply[1] + 1
    elseif facts[1] == tenant and facts[2] == 'released' then
      reply[#reply + 1] = suffix
    end
  end
  return reply
end
