-- delete_supergroup: delete a supergroup and its ownerships; its groups stay
-- ARGV    tenant, id
-- USES    groups, import_lock
-- RETURNS ["importing"], or 1, or 0 if there is no such supergroup
-- EVENTS  none
-- INVARIANT I20 no group names a deleted supergroup

if import_runs(tenant) then return { 'importing' } end
for _, group in ipairs(redis.call('ZRANGE', parts_key(tenant, id), 0, -1)) do redis.call('ZREM', wholes_key(tenant, group), id) end
redis.call('DEL', parts_key(tenant, id))
remove_owners(tenant, 'supergroup:' .. id)
redis.call('ZREM', supergroupids_key(tenant), id)
return redis.call('HDEL', supergroups_key(tenant), id)
