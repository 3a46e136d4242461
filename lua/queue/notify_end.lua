-- notify_end: have a client told when a task ends
-- ARGV    id, client
-- RETURNS ["live"] from now on it will be told; [state, answer] of an ended task that is kept; ["gone"] if there is none
-- EVENTS  none; the end comes as an entry of the client's reply stream

local facts = redis.call('HMGET', task_key(id), 'state', 'answer', 'ended', 'reply')
if not facts[1] then return { 'gone' } end
if facts[3] then return { facts[1], facts[2] or '' } end
local told = ' ' .. (facts[4] or '') .. ' '
if not string.find(told, ' ' .. client .. ' ', 1, true) then
  redis.call('HSET', task_key(id), 'reply', (facts[4] and facts[4] .. ' ' or '') .. client)
end
return { 'live' }
