-- ownership: the existence of an owner and of what it owns

-- Returns what is missing: "user" or "object"; nil if both exist.
function Ownership.missing_for_ownership(tenant, user, kind, id)
  if redis_call('HEXISTS', Key.users(tenant), user) == 0 then return 'user' end
  if not Collections.exists(tenant, kind, id) then return 'object' end
end
