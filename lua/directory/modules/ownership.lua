-- ownership: the existence of an owner and of what it owns

-- Returns what is missing: "user" or "object"; nil if both exist.
function Ownership.missing_for_ownership(tenant, user, kind, id)
  if redis_call('HEXISTS', Key.users(tenant), user) == 0 then return 'user' end
  local objects = kind == 'group' and Key.groups(tenant) or Key.supergroups(tenant)
  if redis_call('HEXISTS', objects, id) == 0 then return 'object' end
end
