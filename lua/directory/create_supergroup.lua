-- create_supergroup: store a new supergroup with its groups
-- ARGV    tenant, id, record, groups:rest
--         record: the supergroup as JSON; its version identifies this call
-- USES    groups, import_lock
-- RETURNS ["created"] or ["importing"] ["exists"] ["group", id] (there is none) ["limit"]
-- EVENTS  none
-- INVARIANT I20 the groups of a supergroup exist; a refusal writes nothing

local stored = redis.call('HGET', supergroups_key(tenant), id)
if stored then return { cjson.decode(stored).version == cjson.decode(record).version and 'created' or 'exists' } end
if import_runs(tenant) then return { 'importing' } end
local refusal = refused_part(tenant, id, groups)
if refusal then return refusal end

redis.call('HSET', supergroups_key(tenant), id, record)
redis.call('ZADD', supergroupids_key(tenant), 0, id)
for _, group in ipairs(groups) do add_part(tenant, id, group) end
return { 'created' }
