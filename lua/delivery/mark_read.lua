-- mark_read: note that a dialog was read up to a message
-- ARGV    channel, account, peer, number:int
-- RETURNS the entries of the messages that are read by this and not yet removed from the index
-- EVENTS  none

local key = references_key(channel, account, peer)
-- A mark may overtake the noting of the message that it covers, by moments.
local MOMENTS_MS = 60000
local is_new = redis.call('EXISTS', key) == 0
if number > tonumber(redis.call('ZSCORE', key, 'read') or '-1') then redis.call('ZADD', key, number, 'read') end
if is_new then redis.call('PEXPIRE', key, MOMENTS_MS) end
local entries = {}
for _, entry in ipairs(redis.call('ZRANGEBYSCORE', key, '-inf', number)) do
  if entry ~= 'read' then entries[#entries + 1] = entry end
end
return entries
