-- Uploads: the list of a tenant's files, member <id>:<bytes>, score the ms at which the file expires.

local LEAST_BYTES = 65536

local function number_of_parts(tenant, id) return tonumber(redis_call('HGET', Key.upload(tenant, id), 'parts')) end

-- Let a file, its parts and its line in the list live until `expires` at the least.
function Uploads.keep_upload(tenant, id, expires)
  local file = Key.upload(tenant, id)
  if redis_call('PEXPIRETIME', file) >= expires then return end
  redis_call('PEXPIREAT', file, expires)
  for n = 0, number_of_parts(tenant, id) - 1 do redis_call('PEXPIREAT', Key.uploadpart(tenant, id, n), expires) end
  local list = Key.uploadlist(tenant)
  redis_call('ZADD', list, expires, id .. ':' .. redis_call('HGET', file, 'bytes'))
  if redis_call('PEXPIRETIME', list) < expires then redis_call('PEXPIREAT', list, expires) end
end

-- Return whether all parts of a file are there.
function Uploads.is_complete(tenant, id)
  local parts = number_of_parts(tenant, id)
  if not parts then return false end
  for n = 0, parts - 1 do
    if redis_call('EXISTS', Key.uploadpart(tenant, id, n)) == 0 then return false end
  end
  return true
end

-- Return how many bytes the files of a tenant take. A small file counts as 64 KiB, so that their number is bounded, too.
function Uploads.used_bytes(tenant)
  local used = 0
  redis_call('ZREMRANGEBYSCORE', Key.uploadlist(tenant), '-inf', now)
  for _, member in ipairs(redis_call('ZRANGE', Key.uploadlist(tenant), 0, -1)) do
    used = used + math.max(tonumber(string.match(member, ':(%d+)$')), LEAST_BYTES)
  end
  return used
end
