-- remove_from_supergroup: take a group out of a supergroup
-- ARGV    tenant, supergroup, group
-- USES    import_lock
-- RETURNS ["removed"] or ["importing"] ["supergroup"] ["group", id]: there is none
-- EVENTS  none
-- INVARIANT I20 supergroups and their groups name each other

if import_runs(tenant) then return { 'importing' } end
if redis.call('HEXISTS', supergroups_key(tenant), supergroup) == 0 then return { 'supergroup' } end
if redis.call('HEXISTS', groups_key(tenant), group) == 0 then return { 'group', group } end

redis.call('ZREM', parts_key(tenant, supergroup), group)
redis.call('ZREM', wholes_key(tenant, group), supergroup)
return { 'removed' }
