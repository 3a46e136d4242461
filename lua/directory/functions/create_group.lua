-- create_group: store a new group with its first members
-- ARGV    tenant, id, record, users:rest
--         record: the group as JSON; its version identifies this call; users: at most 500
-- RETURNS ["created"] or ["importing"] ["exists"] ["user", id] ["limit", user]
--         ["leaving"]: a deleted group with this id still has members; call delete_group first
-- EVENTS  none
-- INVARIANT I20 members and memberships agree; a refusal writes nothing

return function(tenant, id, record, users)
  local stored = redis_call('HGET', Key.groups(tenant), id)
  if stored then return { cjson.decode(stored).version == cjson.decode(record).version and 'created' or 'exists' } end
  if ImportLock.import_runs(tenant) then return { 'importing' } end
  if redis_call('EXISTS', Key.members(tenant, id)) == 1 then return { 'leaving' } end
  local refusal = Groups.refused_member(tenant, id, users)
  if refusal then return refusal end

  redis_call('HSET', Key.groups(tenant), id, record)
  redis_call('ZADD', Key.groupids(tenant), 0, id)
  Groups.add_members_to(tenant, id, users)
  return { 'created' }
end
