-- save_series: change a series of deliveries, and put the task of its next moment in the same step
-- ARGV    tenant, series, before, after, most:int, row:rest
--         before: its record as it was read, '' for a new one; after: '' removes it; most: series of the tenant
--         row: of the task (put.lua), none if it has no further moment
-- RETURNS 1, 0 if another step has changed it meanwhile, -1 if there are too many
-- EVENTS  for deliveries that fell due before: outcomes, reported, released and finished

return function(tenant, series, before, after, most, row)
  local key = Key.series(tenant)
  local stored = redis_call('HGET', key, series) or ''
  if stored == after then return 1 end
  if stored ~= before then return 0 end
  if before == '' and redis_call('HLEN', key) >= most then return -1 end
  if after == '' then
    redis_call('HDEL', key, series)
  else
    redis_call('HSET', key, series, after)
  end
  if row[1] then NewTasks.add('series', row) end
  return 1
end
