-- remove_member: take a person out of a group
-- ARGV    tenant, group, user
-- USES    import_lock
-- RETURNS ["removed"] or ["importing"] ["group"] ["user", id]: there is none
-- EVENTS  none
-- INVARIANT I20 members and memberships agree

if import_runs(tenant) then return { 'importing' } end
if redis.call('HEXISTS', groups_key(tenant), group) == 0 then return { 'group' } end
if redis.call('HEXISTS', users_key(tenant), user) == 0 then return { 'user', user } end

redis.call('ZREM', members_key(tenant, group), user)
redis.call('ZREM', memberships_key(tenant, user), group)
return { 'removed' }
