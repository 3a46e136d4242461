-- create_supergroup: store a new supergroup with its groups
-- ARGV    tenant, id, record, groups:rest
--         record: the supergroup as JSON; its version identifies this call
-- RETURNS ["created"] or ["importing"] ["exists"] ["group", id] (there is none) ["limit"]
-- EVENTS  none
-- INVARIANT I20 the groups of a supergroup exist; a refusal writes nothing

return function(tenant, id, record, groups)
  local stored = redis_call('HGET', Key.supergroups(tenant), id)
  if stored then return { cjson.decode(stored).version == cjson.decode(record).version and 'created' or 'exists' } end
  if ImportLock.import_runs(tenant) then return { 'importing' } end
  local refusal = Groups.refused_part(tenant, id, groups)
  if refusal then return refusal end

  redis_call('HSET', Key.supergroups(tenant), id, record)
  redis_call('ZADD', Key.supergroupids(tenant), 0, id)
  for _, group in ipairs(groups) do Groups.add_part(tenant, id, group) end
  return { 'created' }
end
