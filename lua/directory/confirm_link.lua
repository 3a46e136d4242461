-- confirm_link: link a contact, if the code is right
-- ARGV    tenant, link, hash, call, version, record, most_guesses:int
--         hash: of the code as typed; call: identifies this call; record: the person with the contact, made from the one with `version`
-- USES    people, import_lock
-- RETURNS ["linked"] or ["missing"] (nothing requested) ["taken"] (the contact has a person) ["guesses"] (the code is void) ["expired"]
--         ["wrong", guesses left] ["changed"]: the person has another version; nothing was written ["importing"]
-- EVENTS  none
-- INVARIANT a code links once, however many callers confirm it at the same time; after `most_guesses` wrong ones it is void

local known = redis.call('HMGET', link_key(tenant, link), 'hash', 'expires', 'guesses', 'user', 'channel', 'address', 'used')
local wanted, expires, guesses, user, channel, address, used = unpack(known)
if not wanted then return { 'missing' } end
if used and used == call then return { 'linked' } end
if redis.call('HEXISTS', contacts_key(tenant), channel .. ':' .. address) == 1 then return { 'taken' } end
if used then return { 'missing' } end
if tonumber(guesses) >= most_guesses then return { 'guesses' } end
if tonumber(expires) <= now then return { 'expired' } end
if hash ~= wanted then return { 'wrong', most_guesses - redis.call('HINCRBY', link_key(tenant, link), 'guesses', 1) } end
if import_runs(tenant) then return { 'importing' } end
local stored = redis.call('HGET', users_key(tenant), user)
if not stored then return { 'missing' } end
local old = cjson.decode(stored)
if old.version ~= version then return { 'changed' } end

redis.call('HSET', link_key(tenant, link), 'used', call)
redis.call('HSET', users_key(tenant), user, record)
unindex_user(tenant, user, old)
index_user(tenant, user, cjson.decode(record))
return { 'linked' }
