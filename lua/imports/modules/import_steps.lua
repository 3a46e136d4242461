-- import_steps: writes the steps of an import, gathered by the caller
-- The checks of the import make sure that no value goes from one person to another, so the order of the gathered writes does not matter.

local function write_contacts(tenant, id, old, new)
  local contacts, had, has = Key.contacts(tenant), {}, {}
  for _, contact in ipairs(People.contacts_of(old)) do had[contact] = true end
  for _, contact in ipairs(People.contacts_of(new)) do
    has[contact] = true
    if not had[contact] then WriteBuffer.write('HSET', contacts, contact, id) end
  end
  for contact in pairs(had) do
    if not has[contact] then WriteBuffer.write('HDEL', contacts, contact) end
  end
end

local function write_email(tenant, id, old, new)
  if old.email == new.email then return end
  if old.email then WriteBuffer.write('HDEL', Key.emails(tenant), old.email) end
  if new.email then WriteBuffer.write('HSET', Key.emails(tenant), new.email, id) end
end

local function write_role(tenant, id, old, new)
  if old.role == new.role then return end
  if old.role then WriteBuffer.write('ZREM', Key.role(tenant, old.role), id) end
  if new.role then WriteBuffer.write('ZADD', Key.role(tenant, new.role), 0, id) end
end

-- A record that another program has damaged must not stop the import for ever.
local function readable(stored)
  local is_readable, read = pcall(cjson.decode, stored or '{}')
  return is_readable and type(read) == 'table' and read or {}
end

local function relate(one, other, first, second)
  WriteBuffer.write('ZADD', one, 0, second)
  WriteBuffer.write('ZADD', other, 0, first)
end

local function separate(one, other, first, second)
  WriteBuffer.write('ZREM', one, second)
  WriteBuffer.write('ZREM', other, first)
end

local STEPS = {}

function STEPS.user(tenant, id, record)
  local stored = redis_call('HGET', Key.users(tenant), id)
  local old, new = readable(stored), cjson.decode(record)
  WriteBuffer.write('HSET', Key.users(tenant), id, record)
  if not stored then WriteBuffer.write('ZADD', Key.userids(tenant), 0, id) end
  write_email(tenant, id, old, new)
  write_role(tenant, id, old, new)
  write_contacts(tenant, id, old, new)
end

function STEPS.group(tenant, id, record)
  WriteBuffer.write('HSET', Key.groups(tenant), id, record)
  WriteBuffer.write('ZADD', Key.groupids(tenant), 0, id)
end

function STEPS.supergroup(tenant, id, record)
  WriteBuffer.write('HSET', Key.supergroups(tenant), id, record)
  WriteBuffer.write('ZADD', Key.supergroupids(tenant), 0, id)
end

function STEPS.member(tenant, group, user) relate(Key.members(tenant, group), Key.memberships(tenant, user), group, user) end

function STEPS.own(tenant, user, object) relate(Key.owned(tenant, user), Key.owners(tenant, object), user, object) end

function STEPS.part(tenant, supergroup, group) relate(Key.parts(tenant, supergroup), Key.wholes(tenant, group), supergroup, group) end

function STEPS.unpart(tenant, supergroup, group)
  separate(Key.parts(tenant, supergroup), Key.wholes(tenant, group), supergroup, group)
end

-- `step`: its name and two values: a record and its id, or the two ends of a relation.
function ImportSteps.write(tenant, step) STEPS[step[1]](tenant, step[2], step[3]) end
