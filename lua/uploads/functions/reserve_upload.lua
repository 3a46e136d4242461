-- reserve_upload: make room for a file, whose parts follow
-- ARGV    tenant, id, name, bytes:int, parts:int, limit:int, lifetime_ms:int
--         id: hash of the name and the content; limit: bytes that all files of the tenant may take
-- RETURNS ["known"] (the same file is there) ["new"] or ["full", bytes used]
-- EVENTS  none
-- INVARIANT the files of a tenant take at most limit bytes; what is not complete expires like what is

return function(tenant, id, name, bytes, parts, limit, lifetime_ms)
  local expires = now + lifetime_ms
  if redis_call('EXISTS', Key.upload(tenant, id)) == 1 then
    Uploads.keep_upload(tenant, id, expires)
    return { Uploads.is_complete(tenant, id) and 'known' or 'new' }
  end
  local used = Uploads.used_bytes(tenant)
  if used + bytes > limit then return { 'full', used } end
  redis_call('HSET', Key.upload(tenant, id), 'name', name, 'bytes', bytes, 'parts', parts)
  Uploads.keep_upload(tenant, id, expires)
  return { 'new' }
end
