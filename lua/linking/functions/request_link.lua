-- request_link: note that a code is mailed to the person with an e-mail address, to link a contact
-- ARGV    tenant, link, email, channel, address, hash, call, lifetime_ms:int, most:int, most_to_person:int, period_ms:int
--         link: the id, one for each contact; hash: of the code; call: identifies this call; most: mails for one contact in the
--         period; most_to_person: to one person, whatever the contact
-- RETURNS ["requested", user, expires ms] or ["linked"] (the contact has a person) ["unknown"] (no person has the e-mail address)
--         ["mails", ms to wait]
-- EVENTS  none
-- INVARIANT a contact has one code at a time: a new one replaces it; an unknown e-mail address counts as a mail for the contact

return function(tenant, link, email, channel, address, hash, call, lifetime_ms, most, most_to_person, period_ms)
  local known = redis_call('HMGET', Key.link(tenant, link), 'call', 'user', 'expires')
  if known[1] == call then return { 'requested', known[2], known[3] } end
  if redis_call('HEXISTS', Key.contacts(tenant), channel .. ':' .. address) == 1 then return { 'linked' } end

  local function is_used_up(of, limit)
    return tonumber(redis_call('GET', Key.linkmails(tenant, of)) or '0') >= limit
  end

  local function count(of)
    if redis_call('INCR', Key.linkmails(tenant, of)) == 1 then redis_call('PEXPIRE', Key.linkmails(tenant, of), period_ms) end
  end

  if is_used_up(link, most) then return { 'mails', redis_call('PTTL', Key.linkmails(tenant, link)) } end
  local user = redis_call('HGET', Key.emails(tenant), email)
  if not user then
    count(link)
    return { 'unknown' }
  end
  local person = 'user:' .. user
  if is_used_up(person, most_to_person) then return { 'mails', redis_call('PTTL', Key.linkmails(tenant, person)) } end

  count(link)
  count(person)
  local expires = string.format('%.0f', now + lifetime_ms)
  redis_call('DEL', Key.link(tenant, link))
  redis_call('HSET', Key.link(tenant, link), 'call', call, 'user', user, 'channel', channel, 'address', address, 'hash', hash,
    'expires', expires, 'guesses', 0)
  redis_call('PEXPIRE', Key.link(tenant, link), lifetime_ms + DAY_MS)
  return { 'requested', user, expires }
end
