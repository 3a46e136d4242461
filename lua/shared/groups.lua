-- groups: the members of groups, the groups of supergroups, and their limits

-- Returns why these people cannot be members of the group; nil if they can. A member stays one, also at the limit.
local function refused_member(tenant, group, users)
  for _, user in ipairs(users) do
    if redis.call('HEXISTS', users_key(tenant), user) == 0 then return { 'user', user } end
    local groups = memberships_key(tenant, user)
    if redis.call('ZCARD', groups) >= RELATIONS and not redis.call('ZSCORE', groups, group) then return { 'limit', user } end
  end
end

local function add_members_to(tenant, group, users)
  for _, user in ipairs(users) do
    redis.call('ZADD', members_key(tenant, group), 0, user)
    redis.call('ZADD', memberships_key(tenant, user), 0, group)
  end
end

-- Returns why these groups cannot be parts of the supergroup; nil if they can.
local function refused_part(tenant, supergroup, groups)
  local parts = redis.call('ZCARD', parts_key(tenant, supergroup))
  for _, group in ipairs(groups) do
    if redis.call('HEXISTS', groups_key(tenant), group) == 0 then return { 'group', group } end
    if parts + #groups > RELATIONS or redis.call('ZCARD', wholes_key(tenant, group)) >= RELATIONS then return { 'limit' } end
  end
end

local function add_part(tenant, supergroup, group)
  redis.call('ZADD', parts_key(tenant, supergroup), 0, group)
  redis.call('ZADD', wholes_key(tenant, group), 0, supergroup)
end

-- Ends all ownerships of a group or supergroup, `<kind>:<id>`.
local function remove_owners(tenant, object)
  for _, user in ipairs(redis.call('ZRANGE', owners_key(tenant, object), 0, -1)) do
    redis.call('ZREM', owned_key(tenant, user), object)
  end
  redis.call('DEL', owners_key(tenant, object))
end
