-- extend: extend the lease of a task, write its checkpoint and, for a parcel, its outcomes so far
-- ARGV    id, token, lease_ms:int, checkpoint, outcomes:json
-- USES    damaged, parcels
-- LATE    wake_later
-- RETURNS ["ok", 1 if cancelled, recipients cancelled meanwhile, one per line] or ["stale"]
-- EVENTS  outcomes, reported, finished
-- INVARIANT I8 an old token changes nothing

local fields = read_hash(task_key(id), 'token', 'state', 'cancel', 'skip', 'history', 'tube', 'place')
if fields[1] ~= token or fields[2] ~= 'taken' then return { 'stale' } end
redis.call('ZADD', lease_key(), now + lease_ms, id)
if checkpoint ~= '' then redis.call('HSET', task_key(id), 'checkpoint', checkpoint) end
if fields[5] and #outcomes > 0 then
  close_items(id, { history = fields[5], tube = fields[6], place = fields[7] }, outcomes)
end
return { 'ok', fields[3] and 1 or 0, fields[4] or '' }
