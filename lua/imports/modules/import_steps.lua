-- import_steps: writes the steps of an import, gathered by the caller
-- The checks of the import make sure that no value goes from one person to another, so the order of the gathered writes does not matter.

-- Writes what a person has anew and no longer has into a hash that names the owner of each entry.
local function write_owned(index, id, old, new)
  local had, has = {}, {}
  for _, entry in ipairs(old) do had[entry] = true end
  for _, entry in ipairs(new) do
    has[entry] = true
    if not had[entry] then WriteBuffer.write('HSET', index, entry, id) end
  end
  for entry in pairs(had) do
    if not has[entry] then WriteBuffer.write('HDEL', index, entry) end
  end
end

local function write_names(tenant, id, old, new)
  local names, had, has = Key.names(tenant), {}, {}
  for _, name in ipairs(People.names_of(old, id)) do had[name] = true end
  for _, name in ipairs(People.names_of(new, id)) do
    has[name] = true
    if not had[name] then WriteBuffer.write('ZADD', names, 0, name) end
  end
  for name in pairs(had) do
    if not has[name] then WriteBuffer.write('ZREM', names, name) end
  end
end

local function write_guardians(tenant, id, old, new)
  local had, has = {}, {}
  for _, guardian in ipairs(People.guardians_of(old)) do had[guardian] = true end
  for _, guardian in ipairs(People.guardians_of(new)) do
    has[guardian] = true
    if not had[guardian] then WriteBuffer.write('ZADD', Key.children(tenant, guardian), 0, id) end
  end
  for guardian in pairs(had) do
    if not has[guardian] then WriteBuffer.write('ZREM', Key.children(tenant, guardian), id) end
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

local STEPS = {}

-- Adds to `removed` the contacts that the person has no more.
function STEPS.user(tenant, id, record, removed)
  local stored = redis_call('HGET', Key.users(tenant), id)
  local old, new = readable(stored), cjson.decode(record)
  WriteBuffer.write('HSET', Key.users(tenant), id, record)
  if not stored then WriteBuffer.write('ZADD', Key.userids(tenant), 0, id) end
  write_email(tenant, id, old, new)
  write_role(tenant, id, old, new)
  write_owned(Key.contacts(tenant), id, People.contacts_of(old), People.contacts_of(new))
  write_owned(Key.external_ids(tenant), id, old.external_ids or {}, new.external_ids or {})
  People.drop_subscriptions(tenant, old, new)
  write_names(tenant, id, old, new)
  write_guardians(tenant, id, old, new)
  if stored then People.note_opt_outs(tenant, id, old, new) end
  for _, line in ipairs(People.removed_contacts(tenant, id, old, new)) do removed[#removed + 1] = line end
end

function STEPS.group(tenant, id, record) Collections.store(tenant, 'group', id, record) end

function STEPS.supergroup(tenant, id, record) Collections.store(tenant, 'supergroup', id, record) end

function STEPS.join_group(tenant, group, user) Collections.add_member(tenant, 'group', group, user) end

function STEPS.join_supergroup(tenant, supergroup, group) Collections.add_member(tenant, 'supergroup', supergroup, group) end

function STEPS.leave_supergroup(tenant, supergroup, group) Collections.remove_member(tenant, 'supergroup', supergroup, group) end

function STEPS.own(tenant, user, object)
  WriteBuffer.write('ZADD', Key.owned(tenant, user), 0, object)
  WriteBuffer.write('ZADD', Key.owners(tenant, object), 0, user)
end

-- `step`: its name and two values: a record and its id, or the two ends of a relation. `removed`: gets contacts that people have no more.
function ImportSteps.write(tenant, step, removed) STEPS[step[1]](tenant, step[2], step[3], removed) end
