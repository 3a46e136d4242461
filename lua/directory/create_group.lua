-- create_group: store a new group with its first members
-- ARGV    tenant, id, record, users:rest
--         record: the group as JSON; its version identifies this call; users: at most 500
-- USES    groups, import_lock
-- RETURNS ["created"] or ["importing"] ["exists"] ["user", id] ["limit", user]
--         ["leaving"]: a deleted group with this id still has members; call delete_group first
-- EVENTS  none
-- INVARIANT I20 members and memberships agree; a refusal writes nothing

local stored = redis.call('HGET', groups_key(tenant), id)
if stored then return { cjson.decode(stored).version == cjson.decode(record).version and 'created' or 'exists' } end
if import_runs(tenant) then return { 'importing' } end
if redis.call('EXISTS', members_key(tenant, id)) == 1 then return { 'leaving' } end
local refusal = refused_member(tenant, id, users)
if refusal then return refusal end

redis.call('HSET', groups_key(tenant), id, record)
redis.call('ZADD', groupids_key(tenant), 0, id)
add_members_to(tenant, id, users)
return { 'created' }
