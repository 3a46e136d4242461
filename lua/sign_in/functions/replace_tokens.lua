-- replace_tokens: store or remove the tokens of a user for a service, if they are still those that were read
-- ARGV    tenant, user, service, expected, encrypted, keys:rest
--         expected: what was read, "" for anything; encrypted: the new tokens, "" removes them; keys: the fingerprints of the keys of this
--         process, the first of them is the key that has encrypted
-- RETURNS 1; 0 if the tokens have changed or were removed since; -1 if tokens were encrypted with a key that this process does not have:
--         nothing was written
-- EVENTS  none
-- INVARIANT I25 the fingerprint of each key that has encrypted tokens is recorded

local function is_known(fingerprint, keys)
  for _, key in ipairs(keys) do
    if key == fingerprint then return true end
  end
  return false
end

return function(tenant, user, service, expected, encrypted, keys)
  local tokens = Key.sign_in_tokens(tenant, user)
  if expected ~= '' and redis_call('HGET', tokens, service) ~= expected then return 0 end
  if encrypted == '' then
    redis_call('HDEL', tokens, service)
    return 1
  end
  for _, fingerprint in ipairs(redis_call('SMEMBERS', Key.sign_in_keys())) do
    if not is_known(fingerprint, keys) then return -1 end
  end
  redis_call('SADD', Key.sign_in_keys(), keys[1])
  redis_call('HSET', tokens, service, encrypted)
  return 1
end
