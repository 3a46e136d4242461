-- delete_group: delete a group, its ownerships and its place in supergroups; take a page of its members out
-- ARGV    tenant, id
-- USES    groups, import_lock
-- RETURNS ["importing"], or the number of members that are left; call again until it is 0
-- EVENTS  none
-- INVARIANT I20 after the first call the group is in no supergroup and has no owner; nobody can be added to it

-- A deletion that has begun goes on: an import does not create a group that still has members.
if import_runs(tenant) and redis.call('HEXISTS', groups_key(tenant), id) == 1 then return { 'importing' } end
redis.call('HDEL', groups_key(tenant), id)
redis.call('ZREM', groupids_key(tenant), id)
for _, supergroup in ipairs(redis.call('ZRANGE', wholes_key(tenant, id), 0, -1)) do redis.call('ZREM', parts_key(tenant, supergroup), id) end
redis.call('DEL', wholes_key(tenant, id))
remove_owners(tenant, 'group:' .. id)
local members = members_key(tenant, id)
for _, user in ipairs(redis.call('ZRANGE', members, 0, 499)) do
  redis.call('ZREM', memberships_key(tenant, user), id)
  redis.call('ZREM', members, user)
end
return redis.call('ZCARD', members)
