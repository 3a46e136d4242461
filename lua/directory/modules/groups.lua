-- groups: the members of groups, the groups of supergroups, and their limits

-- Returns why these people cannot be members of the group; nil if they can. A member stays one, also at the limit.
function Groups.refused_member(tenant, group, users)
  for _, user in ipairs(users) do
    if redis_call('HEXISTS', Key.users(tenant), user) == 0 then return { 'user', user } end
    local groups = Key.memberships(tenant, user)
    if redis_call('ZCARD', groups) >= RELATIONS and not redis_call('ZSCORE', groups, group) then return { 'limit', user } end
  end
end

function Groups.add_members_to(tenant, group, users)
  for _, user in ipairs(users) do
    redis_call('ZADD', Key.members(tenant, group), 0, user)
    redis_call('ZADD', Key.memberships(tenant, user), 0, group)
  end
end

-- Returns why these groups cannot be parts of the supergroup; nil if they can.
function Groups.refused_part(tenant, supergroup, groups)
  local parts = redis_call('ZCARD', Key.parts(tenant, supergroup))
  for _, group in ipairs(groups) do
    if redis_call('HEXISTS', Key.groups(tenant), group) == 0 then return { 'group', group } end
    if parts + #groups > RELATIONS or redis_call('ZCARD', Key.wholes(tenant, group)) >= RELATIONS then return { 'limit' } end
  end
end

function Groups.add_part(tenant, supergroup, group)
  redis_call('ZADD', Key.parts(tenant, supergroup), 0, group)
  redis_call('ZADD', Key.wholes(tenant, group), 0, supergroup)
end

-- Ends all ownerships of a group or supergroup, `<kind>:<id>`.
function Groups.remove_owners(tenant, object)
  for _, user in ipairs(redis_call('ZRANGE', Key.owners(tenant, object), 0, -1)) do
    redis_call('ZREM', Key.owned(tenant, user), object)
  end
  redis_call('DEL', Key.owners(tenant, object))
end
