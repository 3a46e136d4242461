-- request_sign_in: note that a code is mailed to an e-mail address, to sign its person in
-- ARGV    code_id, tenant, email, of, hash, lifetime_ms:int, most:int, period_ms:int
--         code_id: new for each request; of: under what the mails to this address are counted; hash: of the code
-- RETURNS ["requested", user or "" if no person has the address, expires ms] or ["mails", ms to wait]
-- EVENTS  none
-- INVARIANT an address without a person is stored and counted as one with a person, so no answer reveals which it is

return function(code_id, tenant, email, of, hash, lifetime_ms, most, period_ms)
  local known = redis_call('HMGET', Key.signincode(code_id), 'user', 'expires')
  if known[1] then return { 'requested', known[1], known[2] } end
  local mails = Key.linkmails(tenant, of)
  if tonumber(redis_call('GET', mails) or '0') >= most then return { 'mails', redis_call('PTTL', mails) } end

  if redis_call('INCR', mails) == 1 then redis_call('PEXPIRE', mails, period_ms) end
  local user = redis_call('HGET', Key.emails(tenant), email) or ''
  local expires = string.format('%.0f', now + lifetime_ms)
  redis_call('HSET', Key.signincode(code_id), 'tenant', tenant, 'user', user, 'hash', hash, 'guesses', 0, 'expires', expires)
  redis_call('PEXPIRE', Key.signincode(code_id), lifetime_ms)
  return { 'requested', user, expires }
end
