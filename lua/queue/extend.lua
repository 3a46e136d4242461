-- extend: hold a task longer, and say what has become of it so far
-- ARGV    id, token, lease_ms:int, checkpoint, outcomes:json
-- USES    write_buffer, ready, outcome, parcels
-- RETURNS ["ok", 1 if cancelled, recipients cancelled meanwhile, a line each] or ["stale"]
-- EVENTS  outcomes, reported, finished
-- INVARIANT I8 an old token changes nothing

local facts = redis.call('HMGET', task_key(id), 'token', 'state', 'cancel', 'skip', 'history', 'tube')
if facts[1] ~= token or facts[2] ~= 'taken' then return { 'stale' } end
redis.call('ZADD', lease_key(), now + lease_ms, id)
if checkpoint ~= '' then redis.call('HSET', task_key(id), 'checkpoint', checkpoint) end
if facts[5] and #outcomes > 0 then
  close_items(id, { history = facts[5], tube = facts[6] }, outcomes)
end
return { 'ok', facts[3] and 1 or 0, facts[4] or '' }
