-- abort_import: end an import of which nothing is written
-- ARGV    tenant, token
-- RETURNS 1 if it was ended, 0 if it had ended or is being written
-- EVENTS  none

local found = redis.call('HMGET', import_key(tenant), 'token', 'state')
if found[1] ~= token or found[2] ~= 'checking' then return 0 end
redis.call('DEL', import_key(tenant), importpages_key(tenant))
redis.call('ZREM', imports_key(), tenant)
return 1
