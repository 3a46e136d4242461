-- collections: what groups and supergroups have in common: a record, members, owners
-- A group has people as members, a supergroup groups. `member_of` has the collections of a member, by their kind.

-- `page`: how many members leave a deleted collection in one call.
local KINDS = {
  group = { page = 500 },
  -- Each owner of a supergroup owns its members, too.
  supergroup = { owned_members = 'group', most_members = RELATIONS, page = RELATIONS },
}

function Collections.exists(tenant, kind, id) return redis_call('HEXISTS', Key.collections(tenant, kind), id) == 1 end

-- Returns whether there is such a person or group.
function Collections.member_exists(tenant, kind, member)
  if kind == 'supergroup' then return Collections.exists(tenant, 'group', member) end
  return redis_call('HEXISTS', Key.users(tenant), member) == 1
end

-- Returns those that are not members yet.
function Collections.new_members(tenant, kind, id, members)
  local new = {}
  for _, member in ipairs(members) do
    if not redis_call('ZSCORE', Key.members(tenant, kind, id), member) then new[#new + 1] = member end
  end
  return new
end

local function is_full(tenant, kind, id, count)
  local most = KINDS[kind].most_members
  return most and redis_call('ZCARD', Key.members(tenant, kind, id)) + count > most
end

local function owner_without(tenant, kind, id, member)
  local of_members = KINDS[kind].owned_members
  if not of_members then return nil end
  for _, user in ipairs(redis_call('ZRANGE', Key.owners(tenant, kind .. ':' .. id), 0, -1)) do
    if not redis_call('ZSCORE', Key.owned(tenant, user), of_members .. ':' .. member) then return user end
  end
end

-- Returns why these new members cannot be added; nil if they can.
function Collections.refused_members(tenant, kind, id, new)
  local full = is_full(tenant, kind, id, #new)
  for _, member in ipairs(new) do
    if not Collections.member_exists(tenant, kind, member) then return { 'member', member } end
    if full or redis_call('ZCARD', Key.member_of(tenant, kind, member)) >= RELATIONS then return { 'limit', member } end
  end
  for _, member in ipairs(new) do
    local owner = owner_without(tenant, kind, id, member)
    if owner then return { 'owner', owner, member } end
  end
end

function Collections.store(tenant, kind, id, record)
  WriteBuffer.write('HSET', Key.collections(tenant, kind), id, record)
  WriteBuffer.write('ZADD', Key.collectionids(tenant, kind), 0, id)
end

function Collections.add_member(tenant, kind, id, member)
  WriteBuffer.write('ZADD', Key.members(tenant, kind, id), 0, member)
  WriteBuffer.write('ZADD', Key.member_of(tenant, kind, member), 0, id)
end

function Collections.remove_member(tenant, kind, id, member)
  WriteBuffer.write('ZREM', Key.members(tenant, kind, id), member)
  WriteBuffer.write('ZREM', Key.member_of(tenant, kind, member), id)
end

-- Takes a page of members out of a collection that is deleted.
function Collections.remove_page(tenant, kind, id)
  for _, member in ipairs(redis_call('ZRANGE', Key.members(tenant, kind, id), 0, KINDS[kind].page - 1)) do
    Collections.remove_member(tenant, kind, id, member)
  end
end

-- Takes a member that is deleted out of all its collections of a kind.
function Collections.remove_from_all(tenant, kind, member)
  for _, id in ipairs(redis_call('ZRANGE', Key.member_of(tenant, kind, member), 0, -1)) do
    Collections.remove_member(tenant, kind, id, member)
  end
end

-- Ends all ownerships of a collection.
function Collections.remove_owners(tenant, kind, id)
  local object = kind .. ':' .. id
  for _, user in ipairs(redis_call('ZRANGE', Key.owners(tenant, object), 0, -1)) do
    WriteBuffer.write('ZREM', Key.owned(tenant, user), object)
    WriteBuffer.write('ZREM', Key.owners(tenant, object), user)
  end
end
