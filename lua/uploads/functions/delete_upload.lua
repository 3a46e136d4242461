-- delete_upload: remove a file; deliveries that name it are sent without it
-- ARGV    tenant, id
-- RETURNS 1, or 0 if there is none
-- EVENTS  none

return function(tenant, id)
  local bytes, parts = unpack(redis_call('HMGET', Key.upload(tenant, id), 'bytes', 'parts'))
  if not bytes then return 0 end
  for n = 0, tonumber(parts) - 1 do redis_call('UNLINK', Key.uploadpart(tenant, id, n)) end
  redis_call('DEL', Key.upload(tenant, id))
  redis_call('ZREM', Key.uploadlist(tenant), id .. ':' .. bytes)
  return 1
end
