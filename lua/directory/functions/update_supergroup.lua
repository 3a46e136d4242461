-- update_supergroup: replace the record of a supergroup, if it has not changed meanwhile
-- ARGV    tenant, id, version, record
--         version: that of the record from which this one was made
-- RETURNS ["importing"], or 1, or 0 if it has changed or is gone
-- EVENTS  none

return function(tenant, id, version, record)
  local stored = redis_call('HGET', Key.supergroups(tenant), id)
  if not stored then return 0 end
  local found = cjson.decode(stored).version
  if found ~= version then return found == cjson.decode(record).version and 1 or 0 end
  if ImportLock.import_runs(tenant) then return { 'importing' } end
  redis_call('HSET', Key.supergroups(tenant), id, record)
  return 1
end
