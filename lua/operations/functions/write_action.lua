-- write_action: add an entry to the action log of a tenant; the steps of one action are one entry, whose count grows
-- ARGV    tenant, step, count:int, kept:int, fields:rest
--         step: names the action that this is a step of, "" if it has one step; fields: of the entry, without `count`
-- RETURNS the id of the entry; it is new with each step, so the entry stands where the last step was
-- EVENTS  none

return function(tenant, step, count, kept, fields)
  local log, known = Key.actions(tenant), step ~= '' and Key.action(tenant, step)
  if known then
    local before = redis_call('HMGET', known, 'entry', 'count')
    if before[1] then
      redis_call('XDEL', log, before[1])
      count = count + tonumber(before[2])
    end
  end
  count = string.format('%.0f', count)
  local entry = redis_call('XADD', log, 'MAXLEN', '~', kept, '*', 'count', count, unpack(fields))
  if known then
    redis_call('HSET', known, 'entry', entry, 'count', count)
    redis_call('PEXPIRE', known, DAY_MS)
  end
  return entry
end
