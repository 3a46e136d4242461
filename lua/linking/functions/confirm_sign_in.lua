-- confirm_sign_in: use up a mailed code, if it is right
-- ARGV    code_id, hash, call, most_guesses:int
--         hash: of the code as typed; call: identifies this call
-- RETURNS ["confirmed", tenant, user] or ["wrong"]: whatever the reason
-- EVENTS  none
-- INVARIANT a code signs in once, however many callers confirm it at the same time; after `most_guesses` wrong ones it is void

return function(code_id, hash, call, most_guesses)
  local known = redis_call('HMGET', Key.signincode(code_id), 'tenant', 'user', 'hash', 'guesses', 'used')
  local tenant, user, wanted, guesses, used = unpack(known)
  if not wanted or (used and used ~= call) then return { 'wrong' } end
  if used == call then return { 'confirmed', tenant, user } end
  if tonumber(guesses) >= most_guesses then return { 'wrong' } end
  if hash ~= wanted or user == '' then
    redis_call('HINCRBY', Key.signincode(code_id), 'guesses', 1)
    return { 'wrong' }
  end
  redis_call('HSET', Key.signincode(code_id), 'used', call)
  return { 'confirmed', tenant, user }
end
