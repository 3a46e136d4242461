-- forget_sign_ins: sign a user out of all services; sign-ins that have begun cannot be finished
-- ARGV    tenant, user
-- RETURNS 1, or 0 if the user was not signed in
-- EVENTS  none
-- INVARIANT nothing that has begun before signs the user in again

return function(tenant, user)
  local begun = Key.sign_in_begun(tenant, user)
  for _, key in ipairs(redis_call('SMEMBERS', begun)) do redis_call('DEL', key) end
  redis_call('DEL', begun)
  return redis_call('DEL', Key.sign_in_tokens(tenant, user))
end
