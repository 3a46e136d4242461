-- extend: extend the lease of a task, write its checkpoint and, for a parcel, its outcomes so far
-- ARGV    id, token, lease_ms:int, checkpoint, outcomes:json
-- RETURNS ["ok", 1 if cancelled, recipients cancelled, or answering, meanwhile, one per line] or ["stale"]
-- EVENTS  outcomes, reported, finished
-- INVARIANT I8 an old token changes nothing

return function(id, token, lease_ms, checkpoint, outcomes)
  local lease = redis_call('HGET', Key.taken(), id)
  if not lease or Record.read_lease(lease) ~= token then return { 'stale' } end
  local task = Record.read(id)
  if not task then return { 'stale' } end
  local fields = Damaged.read_hash(Key.progress(id), 'cancel', 'skip')
  redis_call('ZADD', Key.lease(), now + lease_ms, id)
  if checkpoint ~= '' then redis_call('HSET', Key.progress(id), 'checkpoint', checkpoint) end
  local unwanted = Kinds.of(task).record(id, task, outcomes) or ''
  return { 'ok', fields[1] and 1 or 0, (fields[2] or '') .. unwanted }
end
