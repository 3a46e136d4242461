-- begin_import: start an import: from now on every other write to the directory of the tenant is refused
-- ARGV    tenant, token, kind, rows:int, lease_ms:int
-- RETURNS ["begun"], or ["running", state] if there is another one
-- EVENTS  none
-- INVARIANT an import that is still checked ends by itself when its process is gone: its keys expire

return function(tenant, token, kind, rows, lease_ms)
  local other = redis_call('HMGET', Key.import(tenant), 'token', 'state')
  if other[1] and other[1] ~= token then return { 'running', other[2] } end
  redis_call('HSET', Key.import(tenant), 'token', token, 'state', 'checking', 'kind', kind, 'rows', rows, 'done', 0)
  redis_call('PEXPIRE', Key.import(tenant), lease_ms)
  redis_call('ZADD', Key.imports(), 0, tenant)
  return { 'begun' }
end
