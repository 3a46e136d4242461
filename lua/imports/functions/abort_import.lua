-- abort_import: end an import of which nothing is written
-- ARGV    tenant, token
-- RETURNS 1 if it was ended, 0 if it had ended or is being written
-- EVENTS  none

return function(tenant, token)
  local found = redis_call('HMGET', Key.import(tenant), 'token', 'state')
  if found[1] ~= token or found[2] ~= 'checking' then return 0 end
  redis_call('DEL', Key.import(tenant), Key.importpages(tenant))
  redis_call('ZREM', Key.imports(), tenant)
  return 1
end
