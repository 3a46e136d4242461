-- update_user: replace the record of a person, if it has not changed meanwhile
-- ARGV    tenant, id, version, record
--         version: that of the record from which this one was made
-- USES    people, import_lock
-- RETURNS ["updated"] or ["importing"] ["changed"] ["email"] ["contact", channel:address]
-- EVENTS  none
-- INVARIANT I19 an e-mail address and a contact belong to one person; a refusal writes nothing

local stored = redis.call('HGET', users_key(tenant), id)
if not stored then return { 'changed' } end
local old, user = cjson.decode(stored), cjson.decode(record)
if old.version == user.version then return { 'updated' } end
if import_runs(tenant) then return { 'importing' } end
if old.version ~= version then return { 'changed' } end
local taken = taken_by_another(tenant, id, user)
if taken then return taken end

unindex_user(tenant, id, old)
index_user(tenant, id, user)
redis.call('HSET', users_key(tenant), id, record)
return { 'updated' }
