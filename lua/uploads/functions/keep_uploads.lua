-- keep_uploads: let complete files live longer; never shorter
-- ARGV    tenant, expires:int, ids:rest
-- RETURNS for each id [name, bytes, parts, expires ms], or [] if there is no such file
-- EVENTS  none

return function(tenant, expires, ids)
  local found = {}
  for n, id in ipairs(ids) do
    found[n] = {}
    if Uploads.is_complete(tenant, id) then
      Uploads.keep_upload(tenant, id, expires)
      local file = Key.upload(tenant, id)
      found[n] = redis_call('HMGET', file, 'name', 'bytes', 'parts')
      found[n][4] = redis_call('PEXPIRETIME', file)
    end
  end
  return found
end
