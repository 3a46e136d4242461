-- people: the indexes of a person's record: e-mail, contacts, role, sorted ids

local function contacts_of(user)
  local found = {}
  for channel, addresses in pairs(user.contacts or {}) do
    for _, address in ipairs(addresses) do found[#found + 1] = channel .. ':' .. address end
  end
  return found
end

-- Returns what another person has of this person's e-mail address and contacts; nil if it is free.
local function taken_by_another(tenant, id, user)
  local owner = user.email and redis.call('HGET', emails_key(tenant), user.email)
  if owner and owner ~= id then return { 'email' } end
  for _, contact in ipairs(contacts_of(user)) do
    owner = redis.call('HGET', contacts_key(tenant), contact)
    if owner and owner ~= id then return { 'contact', contact } end
  end
end

local function index_user(tenant, id, user)
  redis.call('ZADD', userids_key(tenant), 0, id)
  if user.email then redis.call('HSET', emails_key(tenant), user.email, id) end
  if user.role then redis.call('ZADD', role_key(tenant, user.role), 0, id) end
  for _, contact in ipairs(contacts_of(user)) do redis.call('HSET', contacts_key(tenant), contact, id) end
end

local function unindex_user(tenant, id, user)
  redis.call('ZREM', userids_key(tenant), id)
  if user.email then redis.call('HDEL', emails_key(tenant), user.email) end
  if user.role then redis.call('ZREM', role_key(tenant, user.role), id) end
  for _, contact in ipairs(contacts_of(user)) do redis.call('HDEL', contacts_key(tenant), contact) end
end
