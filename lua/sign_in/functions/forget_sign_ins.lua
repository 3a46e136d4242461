-- forget_sign_ins: sign a user out of a service, or of all services: then sign-ins that have begun cannot be finished
-- ARGV    tenant, user, service
--         service: "" for all
-- RETURNS what was deleted: service, tokens, service, tokens, …; empty if the user was not signed in
-- EVENTS  none
-- INVARIANT after it was signed out of all services, nothing that has begun before signs the user in again

local function forget_one(tokens, service)
  local found = redis_call('HGET', tokens, service)
  if not found then return {} end
  redis_call('HDEL', tokens, service)
  return { service, found }
end

return function(tenant, user, service)
  local tokens = Key.sign_in_tokens(tenant, user)
  if service ~= '' then return forget_one(tokens, service) end
  local begun = Key.sign_in_begun(tenant, user)
  for _, key in ipairs(redis_call('SMEMBERS', begun)) do redis_call('DEL', key) end
  redis_call('DEL', begun)
  local deleted = redis_call('HGETALL', tokens)
  redis_call('DEL', tokens)
  return deleted
end
