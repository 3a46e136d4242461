-- journal_import: store one page of what an import will write, and prolong the import
-- ARGV    tenant, token, number:int, page, done:int, lease_ms:int
--         page: MessagePack of the steps, as `write_import` reads them; "": only prolong. done: rows checked so far
-- RETURNS 1, or 0 if the import has ended meanwhile
-- EVENTS  none

return function(tenant, token, number, page, done, lease_ms)
  if redis_call('HGET', Key.import(tenant), 'token') ~= token then return 0 end
  redis_call('HSET', Key.import(tenant), 'done', done)
  redis_call('PEXPIRE', Key.import(tenant), lease_ms)
  if page ~= '' then redis_call('HSET', Key.importpages(tenant), number, page) end
  redis_call('PEXPIRE', Key.importpages(tenant), lease_ms)
  return 1
end
