-- remove_member: take a person out of a group
-- ARGV    tenant, group, user
-- RETURNS ["removed"] or ["importing"] ["group"] ["user", id]: there is none
-- EVENTS  none
-- INVARIANT I20 members and memberships agree

return function(tenant, group, user)
  if ImportLock.import_runs(tenant) then return { 'importing' } end
  if redis_call('HEXISTS', Key.groups(tenant), group) == 0 then return { 'group' } end
  if redis_call('HEXISTS', Key.users(tenant), user) == 0 then return { 'user', user } end

  redis_call('ZREM', Key.members(tenant, group), user)
  redis_call('ZREM', Key.memberships(tenant, user), group)
  return { 'removed' }
end
