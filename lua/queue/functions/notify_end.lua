-- notify_end: have a client notified when a task ends
-- ARGV    id, client
-- RETURNS ["live"]: the client will be notified; [state, answer] of an ended task that is kept; ["gone"] if there is none
-- EVENTS  none; the end is an entry of the client's reply stream

return function(id, client)
  local task = Record.stored(id)
  if not task then return { 'gone' } end
  if task.ended then return { task.state, redis_call('HGET', Key.progress(id), 'answer') or '' } end
  local clients = ' ' .. (task.reply or '') .. ' '
  if not string.find(clients, ' ' .. client .. ' ', 1, true) then
    task.reply = (task.reply and task.reply .. ' ' or '') .. client
    Record.save(id, task)
  end
  return { 'live' }
end
