-- extend: extend the lease of a task, write its checkpoint and, for a parcel, its outcomes so far
-- ARGV    id, token, lease_ms:int, checkpoint, outcomes:json
-- RETURNS ["ok", 1 if cancelled, recipients cancelled meanwhile, one per line] or ["stale"]
-- EVENTS  outcomes, reported, finished
-- INVARIANT I8 an old token changes nothing

return function(id, token, lease_ms, checkpoint, outcomes)
  local fields = Damaged.read_hash(Key.task(id), 'token', 'state', 'cancel', 'skip', 'history', 'tube', 'place')
  if fields[1] ~= token or fields[2] ~= 'taken' then return { 'stale' } end
  redis_call('ZADD', Key.lease(), now + lease_ms, id)
  if checkpoint ~= '' then redis_call('HSET', Key.task(id), 'checkpoint', checkpoint) end
  if fields[5] and #outcomes > 0 then
    Parcels.close_items(id, { history = fields[5], tube = fields[6], place = fields[7] }, outcomes)
  end
  return { 'ok', fields[3] and 1 or 0, fields[4] or '' }
end
