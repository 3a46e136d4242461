-- journal_import: store one page of what an import will write, and prolong the import
-- ARGV    tenant, token, number:int, page, done:int, lease_ms:int
--         page: MessagePack of the steps, as `write_import` reads them; "": only prolong. done: rows checked so far
-- RETURNS 1, or 0 if the import has ended meanwhile
-- EVENTS  none

if redis.call('HGET', import_key(tenant), 'token') ~= token then return 0 end
redis.call('HSET', import_key(tenant), 'done', done)
redis.call('PEXPIRE', import_key(tenant), lease_ms)
if page ~= '' then redis.call('HSET', importpages_key(tenant), number, page) end
redis.call('PEXPIRE', importpages_key(tenant), lease_ms)
return 1
