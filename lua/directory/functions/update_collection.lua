-- update_collection: replace the record of a group or supergroup, if it has not changed meanwhile
-- ARGV    tenant, kind, id, version, record
--         version: that of the record from which this one was made
-- RETURNS ["importing"], or 1, or 0 if it has changed or is gone
-- EVENTS  none

return function(tenant, kind, id, version, record)
  local stored = redis_call('HGET', Key.collections(tenant, kind), id)
  if not stored then return 0 end
  local found = cjson.decode(stored).version
  if found ~= version then return found == cjson.decode(record).version and 1 or 0 end
  if ImportLock.import_runs(tenant) then return { 'importing' } end
  redis_call('HSET', Key.collections(tenant, kind), id, record)
  return 1
end
