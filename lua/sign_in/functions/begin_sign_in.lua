-- begin_sign_in: store a step of a user's sign-in, until its lifetime ends or the user is forgotten
-- ARGV    tenant, user, step, digest, encrypted, lifetime_ms:int
--         step: "link" (an address that can be confirmed) or "state" (a callback that can be accepted); digest: of its secret
-- RETURNS 1
-- EVENTS  none
-- INVARIANT a step is noted with its user, so that forget_sign_ins ends it

return function(tenant, user, step, digest, encrypted, lifetime_ms)
  local key, begun = step == 'link' and Key.sign_in_link(digest) or Key.sign_in_state(digest), Key.sign_in_begun(tenant, user)
  redis_call('SET', key, encrypted, 'PX', lifetime_ms)
  local left = redis_call('PTTL', begun)
  redis_call('SADD', begun, key)
  redis_call('PEXPIRE', begun, math.max(left, lifetime_ms))
  return 1
end
