-- delete_user: delete a person with its contacts, memberships and ownerships
-- ARGV    tenant, id
-- USES    people, import_lock
-- RETURNS ["importing"], or 1, or 0 if there is no such person
-- EVENTS  none
-- INVARIANT I19 no index names a deleted person

if import_runs(tenant) then return { 'importing' } end
local stored = redis.call('HGET', users_key(tenant), id)
if not stored then return 0 end

unindex_user(tenant, id, cjson.decode(stored))
for _, group in ipairs(redis.call('ZRANGE', memberships_key(tenant, id), 0, -1)) do redis.call('ZREM', members_key(tenant, group), id) end
for _, object in ipairs(redis.call('ZRANGE', owned_key(tenant, id), 0, -1)) do redis.call('ZREM', owners_key(tenant, object), id) end
redis.call('DEL', memberships_key(tenant, id), owned_key(tenant, id))
redis.call('HDEL', users_key(tenant), id)
return 1
