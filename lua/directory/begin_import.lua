-- begin_import: start an import: from now on every other write to the directory of the tenant is refused
-- ARGV    tenant, token, kind, rows:int, lease_ms:int
-- RETURNS ["begun"], or ["running", state] if there is another one
-- EVENTS  none
-- INVARIANT an import that is still checked ends by itself when its process is gone: its keys expire

local other = redis.call('HMGET', import_key(tenant), 'token', 'state')
if other[1] and other[1] ~= token then return { 'running', other[2] } end
redis.call('HSET', import_key(tenant), 'token', token, 'state', 'checking', 'kind', kind, 'rows', rows, 'done', 0)
redis.call('PEXPIRE', import_key(tenant), lease_ms)
redis.call('ZADD', imports_key(), 0, tenant)
return { 'begun' }
