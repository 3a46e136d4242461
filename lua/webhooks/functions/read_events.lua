-- read_events: return the next entries of the event stream for the webhooks; one process reads them at a time
-- ARGV    owner, lease_ms:int, limit:int
--         owner: the process; lease_ms: how long no other process may read, 0: another may read at once
-- RETURNS nothing if another process reads; else [now, id of the oldest entry or "", length of the stream, position, entry, …]
--         position: name, value, …; entry: [id, fields, tenant of the history or ""]
-- EVENTS  none

return function(owner, lease_ms, limit)
  local reader = redis_call('GET', Key.reader())
  if reader and reader ~= owner then return {} end
  if lease_ms == 0 then
    redis_call('DEL', Key.reader())
    return {}
  end
  redis_call('SET', Key.reader(), owner, 'PX', lease_ms)
  local after = redis_call('HGET', Key.position(), 'entry')
  local oldest = redis_call('XRANGE', Key.events(), '-', '+', 'COUNT', 1)[1]
  local reply = { now, oldest and oldest[1] or '', redis_call('XLEN', Key.events()), redis_call('HGETALL', Key.position()) }
  for _, entry in ipairs(redis_call('XRANGE', Key.events(), after and '(' .. after or '-', '+', 'COUNT', limit)) do
    local suffix
    for n = 1, #entry[2], 2 do
      if entry[2][n] == 'history' then suffix = entry[2][n + 1] end
    end
    reply[#reply + 1] = { entry[1], entry[2], suffix and redis_call('HGET', Key.history(suffix), 'tenant') or '' }
  end
  return reply
end
