-- end_day: note what has become of parts of a message of the day
-- ARGV    tenant, channel, address, deferred, outcome, last, names:json
--         deferred: 1 if the parts were certainly not sent and may join again; outcome: of the parts; last: that of the last one
--         names: of the parts that join_day has returned, in their order
-- RETURNS 1
-- EVENTS  none

return function(tenant, channel, address, deferred, outcome, last, names)
  local key = Key.day_message(tenant, channel, address)
  for n, name in ipairs(names) do
    redis_call('HDEL', key, 'taken:' .. name)
    redis_call('HSET', key, (deferred == '1' and 'deferred:' or 'ended:') .. name, n == #names and last or outcome)
  end
  redis_call('PEXPIRE', key, 3600000)
  return 1
end
