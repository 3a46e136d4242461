-- delete_group: delete a group, its ownerships and its place in supergroups; take a page of its members out
-- ARGV    tenant, id
-- RETURNS ["importing"], or the number of members that are left; call again until it is 0
-- EVENTS  none
-- INVARIANT I20 after the first call the group is in no supergroup and has no owner; nobody can be added to it

return function(tenant, id)
  -- A deletion that has begun goes on: an import does not create a group that still has members.
  if ImportLock.import_runs(tenant) and redis_call('HEXISTS', Key.groups(tenant), id) == 1 then return { 'importing' } end
  redis_call('HDEL', Key.groups(tenant), id)
  redis_call('ZREM', Key.groupids(tenant), id)
  for _, supergroup in ipairs(redis_call('ZRANGE', Key.wholes(tenant, id), 0, -1)) do
    redis_call('ZREM', Key.parts(tenant, supergroup), id)
  end
  redis_call('DEL', Key.wholes(tenant, id))
  Groups.remove_owners(tenant, 'group:' .. id)
  local members = Key.members(tenant, id)
  for _, user in ipairs(redis_call('ZRANGE', members, 0, 499)) do
    redis_call('ZREM', Key.memberships(tenant, user), id)
    redis_call('ZREM', members, user)
  end
  return redis_call('ZCARD', members)
end
