-- write_upload_part: store a part of a file for which there is room
-- ARGV    tenant, id, number:int, data
-- RETURNS 1, or 0 if the file was deleted meanwhile
-- EVENTS  none
-- INVARIANT a part lives as long as its file

return function(tenant, id, number, data)
  local expires = redis_call('PEXPIRETIME', Key.upload(tenant, id))
  if expires < 0 then return 0 end
  redis_call('SET', Key.uploadpart(tenant, id, number), data, 'PXAT', expires)
  return 1
end
