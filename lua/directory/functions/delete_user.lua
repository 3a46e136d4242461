-- delete_user: delete a person with its contacts, memberships, ownerships and sessions
-- ARGV    tenant, id
-- RETURNS ["importing"], ["guardian"] if children name it, or 1, or 0 if there is no such person
-- EVENTS  none
-- INVARIANT I19 no index names a deleted person

return function(tenant, id)
  if ImportLock.import_runs(tenant) then return { 'importing' } end
  local stored = redis_call('HGET', Key.users(tenant), id)
  if not stored then return 0 end
  if People.is_guardian(tenant, id) then return { 'guardian' } end

  WriteBuffer.gather()
  local user = cjson.decode(stored)
  People.unindex_user(tenant, id, user)
  People.drop_subscriptions(tenant, user, {})
  Collections.remove_from_all(tenant, 'group', id)
  for _, object in ipairs(redis_call('ZRANGE', Key.owned(tenant, id), 0, -1)) do
    WriteBuffer.write('ZREM', Key.owners(tenant, object), id)
    WriteBuffer.write('ZREM', Key.owned(tenant, id), object)
  end
  People.end_sessions(tenant, id)
  WriteBuffer.write('HDEL', Key.users(tenant), id)
  WriteBuffer.write('DEL', Key.former_contacts(tenant, id))
  WriteBuffer.write_gathered()
  return 1
end
