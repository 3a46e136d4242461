-- write_import: write the next page of a committed import
-- ARGV    tenant, idle_ms:int
--         idle_ms: leave the import to its process if that has written a page within this time; 0: do not
-- USES    people, write_buffer
-- RETURNS the number of pages that are left; 0 also if there is no import; -1 if another process is at work on it
-- EVENTS  none
-- INVARIANT all pages or none: a page is written and counted in one step, so each is written once, in order

local lock, pages = import_key(tenant), importpages_key(tenant)
local state, number, count, beat, token = unpack(redis.call('HMGET', lock, 'state', 'next', 'pages', 'beat', 'token'))
if not state then
  redis.call('ZREM', imports_key(), tenant)
  return 0
end
if state ~= 'writing' or now - tonumber(beat) < idle_ms then return -1 end

-- The checks of the import make sure that no value goes from one person to another, so the order of the gathered writes does not matter.
local users, userids, emails, contacts = users_key(tenant), userids_key(tenant), emails_key(tenant), contacts_key(tenant)

local function write_contacts(id, old, new)
  local had, has = {}, {}
  for _, contact in ipairs(contacts_of(old)) do had[contact] = true end
  for _, contact in ipairs(contacts_of(new)) do
    has[contact] = true
    if not had[contact] then write('HSET', contacts, contact, id) end
  end
  for contact in pairs(had) do
    if not has[contact] then write('HDEL', contacts, contact) end
  end
end

local function write_email(id, old, new)
  if old.email == new.email then return end
  if old.email then write('HDEL', emails, old.email) end
  if new.email then write('HSET', emails, new.email, id) end
end

local function write_role(id, old, new)
  if old.role == new.role then return end
  if old.role then write('ZREM', role_key(tenant, old.role), id) end
  if new.role then write('ZADD', role_key(tenant, new.role), 0, id) end
end

local write_step = {}

function write_step.user(id, record)
  local stored, old, new = redis.call('HGET', users, id), {}, cjson.decode(record)
  if stored then
    -- A record that another program has damaged must not stop the import for ever.
    local is_readable, read = pcall(cjson.decode, stored)
    if is_readable and type(read) == 'table' then old = read end
  end
  write('HSET', users, id, record)
  if not stored then write('ZADD', userids, 0, id) end
  write_email(id, old, new)
  write_role(id, old, new)
  write_contacts(id, old, new)
end

function write_step.group(id, record)
  write('HSET', groups_key(tenant), id, record)
  write('ZADD', groupids_key(tenant), 0, id)
end

function write_step.member(group, user)
  write('ZADD', members_key(tenant, group), 0, user)
  write('ZADD', memberships_key(tenant, user), 0, group)
end

function write_step.supergroup(id, record)
  write('HSET', supergroups_key(tenant), id, record)
  write('ZADD', supergroupids_key(tenant), 0, id)
end

function write_step.part(supergroup, group)
  write('ZADD', parts_key(tenant, supergroup), 0, group)
  write('ZADD', wholes_key(tenant, group), 0, supergroup)
end

function write_step.unpart(supergroup, group)
  write('ZREM', parts_key(tenant, supergroup), group)
  write('ZREM', wholes_key(tenant, group), supergroup)
end

function write_step.own(user, object)
  write('ZADD', owned_key(tenant, user), 0, object)
  write('ZADD', owners_key(tenant, object), 0, user)
end

local page = redis.call('HGET', pages, number)
if page then
  gather()
  for _, step in ipairs(cmsgpack.unpack(page)) do write_step[step[1]](step[2], step[3]) end
  write_gathered()
  redis.call('HDEL', pages, number)
end
redis.call('HSET', lock, 'next', number + 1, 'beat', now)
local left = count - number - 1
if left <= 0 then
  redis.call('DEL', lock, pages)
  redis.call('ZREM', imports_key(), tenant)
  redis.call('SET', imported_key(tenant, token), 1, 'EX', 600)
  return 0
end
return left
