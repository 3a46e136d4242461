-- commit_import: decide that an import is written: from now on its pages stay until all of them are written
-- ARGV    tenant, token, pages:int
-- RETURNS 1, or 0 if the import has ended before, so that nothing is written
-- EVENTS  none
-- INVARIANT all pages or none: this one step comes after the last page of the journal and before the first write

if redis.call('EXISTS', imported_key(tenant, token)) == 1 then return 1 end
local found = redis.call('HMGET', import_key(tenant), 'token', 'state')
if found[1] ~= token then return 0 end
if found[2] == 'writing' then return 1 end
if redis.call('HLEN', importpages_key(tenant)) ~= pages then return 0 end
redis.call('HSET', import_key(tenant), 'state', 'writing', 'pages', pages, 'next', 0, 'beat', now)
redis.call('PERSIST', import_key(tenant))
redis.call('PERSIST', importpages_key(tenant))
return 1
