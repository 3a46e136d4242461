-- mark_read: note that a dialog was read up to a message
-- ARGV    channel, account, peer, number:int
-- RETURNS the entries of the messages that are read by this and not yet removed from the index
-- EVENTS  none

-- A mark may overtake the noting of the message that it covers, by moments.
local MOMENTS_MS = 60000

return function(channel, account, peer, number)
  local key = Key.references(channel, account, peer)
  local is_new = redis_call('EXISTS', key) == 0
  if number > tonumber(redis_call('ZSCORE', key, 'read') or '-1') then redis_call('ZADD', key, number, 'read') end
  if is_new then redis_call('PEXPIRE', key, MOMENTS_MS) end
  local entries = {}
  for _, entry in ipairs(redis_call('ZRANGEBYSCORE', key, '-inf', number)) do
    if entry ~= 'read' then entries[#entries + 1] = entry end
  end
  return entries
end
