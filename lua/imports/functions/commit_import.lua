-- commit_import: decide that an import is written: from now on its pages stay until all of them are written
-- ARGV    tenant, token, pages:int
-- RETURNS 1, or 0 if the import has ended before, so that nothing is written
-- EVENTS  none
-- INVARIANT all pages or none: this one step comes after the last page of the journal and before the first write

return function(tenant, token, pages)
  if redis_call('EXISTS', Key.imported(tenant, token)) == 1 then return 1 end
  local found = redis_call('HMGET', Key.import(tenant), 'token', 'state')
  if found[1] ~= token then return 0 end
  if found[2] == 'writing' then return 1 end
  if redis_call('HLEN', Key.importpages(tenant)) ~= pages then return 0 end
  redis_call('HSET', Key.import(tenant), 'state', 'writing', 'pages', pages, 'next', 0, 'beat', now)
  redis_call('PERSIST', Key.import(tenant))
  redis_call('PERSIST', Key.importpages(tenant))
  return 1
end
