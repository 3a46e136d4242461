-- create_collection: store a new group or supergroup with its first members
-- ARGV    tenant, kind, id, record, members:rest
--         kind: group or supergroup; record: as JSON; its version identifies this call; members: of a group at most 500
-- RETURNS ["created"] or ["importing"] ["exists"] ["member", id] (there is none) ["limit", id]
--         ["leaving"]: a deleted collection with this id still has members; call delete_collection first
-- EVENTS  none
-- INVARIANT I20 collections and their members name each other; a refusal writes nothing

return function(tenant, kind, id, record, members)
  local stored = redis_call('HGET', Key.collections(tenant, kind), id)
  if stored then return { cjson.decode(stored).version == cjson.decode(record).version and 'created' or 'exists' } end
  if ImportLock.import_runs(tenant) then return { 'importing' } end
  if redis_call('EXISTS', Key.members(tenant, kind, id)) == 1 then return { 'leaving' } end
  local refusal = Collections.refused_members(tenant, kind, id, members)
  if refusal then return refusal end

  WriteBuffer.gather()
  Collections.store(tenant, kind, id, record)
  for _, member in ipairs(members) do Collections.add_member(tenant, kind, id, member) end
  WriteBuffer.write_gathered()
  return { 'created' }
end
