-- read_events: return the next entries of the event stream for the webhooks; one process reads them at a time
-- ARGV    owner, lease_ms:int, limit:int
--         owner: the process; lease_ms: how long no other process may read, 0: another may read at once
-- RETURNS nothing if another process reads; else [now, id of the oldest entry or "", length of the stream, position, entry, …]
--         position: name, value, …; entry: [id, fields, tenant of the history or ""]
-- EVENTS  none

local reader = redis.call('GET', reader_key())
if reader and reader ~= owner then return {} end
if lease_ms == 0 then
  redis.call('DEL', reader_key())
  return {}
end
redis.call('SET', reader_key(), owner, 'PX', lease_ms)
local after = redis.call('HGET', position_key(), 'entry')
local oldest = redis.call('XRANGE', events_key(), '-', '+', 'COUNT', 1)[1]
local reply = { now, oldest and oldest[1] or '', redis.call('XLEN', events_key()), redis.call('HGETALL', position_key()) }
for _, entry in ipairs(redis.call('XRANGE', events_key(), after and '(' .. after or '-', '+', 'COUNT', limit)) do
  local suffix
  for n = 1, #entry[2], 2 do
    if entry[2][n] == 'history' then suffix = entry[2][n + 1] end
  end
  reply[#reply + 1] = { entry[1], entry[2], suffix and redis.call('HGET', history_key(suffix), 'tenant') or '' }
end
return reply
