-- delete_user: delete a person with its contacts, memberships and ownerships
-- ARGV    tenant, id
-- RETURNS ["importing"], or 1, or 0 if there is no such person
-- EVENTS  none
-- INVARIANT I19 no index names a deleted person

return function(tenant, id)
  if ImportLock.import_runs(tenant) then return { 'importing' } end
  local stored = redis_call('HGET', Key.users(tenant), id)
  if not stored then return 0 end

  People.unindex_user(tenant, id, cjson.decode(stored))
  for _, group in ipairs(redis_call('ZRANGE', Key.memberships(tenant, id), 0, -1)) do redis_call('ZREM', Key.members(tenant, group), id) end
  for _, object in ipairs(redis_call('ZRANGE', Key.owned(tenant, id), 0, -1)) do redis_call('ZREM', Key.owners(tenant, object), id) end
  redis_call('DEL', Key.memberships(tenant, id), Key.owned(tenant, id))
  redis_call('HDEL', Key.users(tenant), id)
  return 1
end
