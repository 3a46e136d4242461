-- notify_end: have a client notified when a task ends
-- ARGV    id, client
-- RETURNS ["live"]: the client will be notified; [state, answer] of an ended task that is kept; ["gone"] if there is none
-- EVENTS  none; the end is an entry of the client's reply stream

return function(id, client)
  local fields = Damaged.read_hash(Key.task(id), 'state', 'answer', 'ended', 'reply')
  if not fields[1] then return { 'gone' } end
  if fields[3] then return { fields[1], fields[2] or '' } end
  local clients = ' ' .. (fields[4] or '') .. ' '
  if not string.find(clients, ' ' .. client .. ' ', 1, true) then
    redis_call('HSET', Key.task(id), 'reply', (fields[4] and fields[4] .. ' ' or '') .. client)
  end
  return { 'live' }
end
