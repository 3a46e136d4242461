-- confirm_link: link a contact, if the code is right
-- ARGV    tenant, link, hash, call, version, record, most_guesses:int
--         hash: of the code as typed; call: identifies this call; record: the person with the contact, made from the one with `version`
-- RETURNS ["linked"] or ["missing"] (nothing requested) ["taken"] (the contact has a person) ["guesses"] (the code is void) ["expired"]
--         ["wrong", guesses left] ["changed"]: the person has another version; nothing was written ["importing"]
-- EVENTS  none
-- INVARIANT a code links once, however many callers confirm it at the same time; after `most_guesses` wrong ones it is void

return function(tenant, link, hash, call, version, record, most_guesses)
  local known = redis_call('HMGET', Key.link(tenant, link), 'hash', 'expires', 'guesses', 'user', 'channel', 'address', 'used')
  local wanted, expires, guesses, user, channel, address, used = unpack(known)
  if not wanted then return { 'missing' } end
  if used and used == call then return { 'linked' } end
  if redis_call('HEXISTS', Key.contacts(tenant), channel .. ':' .. address) == 1 then return { 'taken' } end
  if used then return { 'missing' } end
  if tonumber(guesses) >= most_guesses then return { 'guesses' } end
  if tonumber(expires) <= now then return { 'expired' } end
  if hash ~= wanted then return { 'wrong', most_guesses - redis_call('HINCRBY', Key.link(tenant, link), 'guesses', 1) } end
  if ImportLock.import_runs(tenant) then return { 'importing' } end
  local stored = redis_call('HGET', Key.users(tenant), user)
  if not stored then return { 'missing' } end
  local old = cjson.decode(stored)
  if old.version ~= version then return { 'changed' } end

  redis_call('HSET', Key.link(tenant, link), 'used', call)
  redis_call('HSET', Key.users(tenant), user, record)
  People.unindex_user(tenant, user, old)
  People.index_user(tenant, user, cjson.decode(record))
  return { 'linked' }
end
