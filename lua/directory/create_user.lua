-- create_user: store a new person
-- ARGV    tenant, id, record
--         record: the person as JSON; its version identifies this call
-- USES    people, import_lock
-- RETURNS ["created"] or ["importing"] ["exists"] ["email"] ["contact", channel:address]
-- EVENTS  none
-- INVARIANT I19 an e-mail address and a contact belong to one person; a refusal writes nothing

local user = cjson.decode(record)
local stored = redis.call('HGET', users_key(tenant), id)
if stored then return { cjson.decode(stored).version == user.version and 'created' or 'exists' } end
if import_runs(tenant) then return { 'importing' } end
local taken = taken_by_another(tenant, id, user)
if taken then return taken end

redis.call('HSET', users_key(tenant), id, record)
index_user(tenant, id, user)
return { 'created' }
