-- ownership: the existence of an owner and of what it owns

-- Returns what is missing: "user" or "object"; nil if both exist.
local function missing_for_ownership(tenant, user, kind, id)
  if redis.call('HEXISTS', users_key(tenant), user) == 0 then return 'user' end
  local objects = kind == 'group' and groups_key(tenant) or supergroups_key(tenant)
  if redis.call('HEXISTS', objects, id) == 0 then return 'object' end
end
