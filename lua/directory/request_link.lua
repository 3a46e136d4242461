-- request_link: note that a code is mailed to the person with an e-mail address, to link a contact
-- ARGV    tenant, link, email, channel, address, hash, call, lifetime_ms:int, most:int, period_ms:int
--         link: the id, one for each contact; hash: of the code; call: identifies this call; most: mails for one contact and to one
--         person in the period
-- RETURNS ["requested", user, expires ms] or ["linked"] (the contact has a person) ["unknown"] (no person has the e-mail address)
--         ["mails", ms to wait]
-- EVENTS  none
-- INVARIANT a contact has one code at a time: a new one replaces it; an unknown e-mail address counts as a mail for the contact

local known = redis.call('HMGET', link_key(tenant, link), 'call', 'user', 'expires')
if known[1] == call then return { 'requested', known[2], known[3] } end
if redis.call('HEXISTS', contacts_key(tenant), channel .. ':' .. address) == 1 then return { 'linked' } end

local function is_used_up(of)
  return tonumber(redis.call('GET', linkmails_key(tenant, of)) or '0') >= most
end

local function count(of)
  if redis.call('INCR', linkmails_key(tenant, of)) == 1 then redis.call('PEXPIRE', linkmails_key(tenant, of), period_ms) end
end

if is_used_up(link) then return { 'mails', redis.call('PTTL', linkmails_key(tenant, link)) } end
local user = redis.call('HGET', emails_key(tenant), email)
if not user then
  count(link)
  return { 'unknown' }
end
local person = 'user:' .. user
if is_used_up(person) then return { 'mails', redis.call('PTTL', linkmails_key(tenant, person)) } end

count(link)
count(person)
local expires = string.format('%.0f', now + lifetime_ms)
redis.call('DEL', link_key(tenant, link))
redis.call('HSET', link_key(tenant, link), 'call', call, 'user', user, 'channel', channel, 'address', address, 'hash', hash,
  'expires', expires, 'guesses', 0)
redis.call('PEXPIRE', link_key(tenant, link), lifetime_ms + DAY_MS)
return { 'requested', user, expires }
