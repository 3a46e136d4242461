-- people: the indexes of a person's record: e-mail, contacts, external ids, role, words of the name, guardians, sorted ids

function People.contacts_of(user)
  local found = {}
  for channel, addresses in pairs(user.contacts or {}) do
    for _, address in ipairs(addresses) do found[#found + 1] = channel .. ':' .. address end
  end
  return found
end

-- Returns what another person has of this person's e-mail address, contacts and external ids; nil if it is free.
function People.taken_by_another(tenant, id, user)
  local owner = user.email and redis_call('HGET', Key.emails(tenant), user.email)
  if owner and owner ~= id then return { 'email' } end
  for _, contact in ipairs(People.contacts_of(user)) do
    owner = redis_call('HGET', Key.contacts(tenant), contact)
    if owner and owner ~= id then return { 'contact', contact } end
  end
  for _, external in ipairs(user.external_ids or {}) do
    owner = redis_call('HGET', Key.external_ids(tenant), external)
    if owner and owner ~= id then return { 'external_id', external } end
  end
end

-- Returns the guardians of a child, each once, also the blocked ones.
function People.guardians_of(user)
  local found, known = {}, {}
  for _, list in ipairs({ user.guardians or {}, user.blocked_guardians or {} }) do
    for _, guardian in ipairs(list) do
      if not known[guardian] then found[#found + 1] = guardian end
      known[guardian] = true
    end
  end
  return found
end

-- Returns the refusal of a guardian that is no person of the directory.
function People.unknown_guardian(tenant, user)
  for _, guardian in ipairs(People.guardians_of(user)) do
    if redis_call('HEXISTS', Key.users(tenant), guardian) == 0 then return { 'guardian', guardian } end
  end
end

-- Returns whether a person is named as a guardian: then its record cannot go yet.
function People.is_guardian(tenant, id) return redis_call('EXISTS', Key.children(tenant, id)) == 1 end

-- Returns the entries of the index of names. The words are in the record: Lua knows no letters beyond ASCII.
function People.names_of(user, id)
  local found = {}
  for _, word in ipairs(user.words or {}) do found[#found + 1] = word .. ' ' .. id end
  return found
end

-- Returns the names that are not in the other list.
local function without(names, others)
  local known, found = {}, {}
  for _, name in ipairs(others or {}) do known[name] = true end
  for _, name in ipairs(names or {}) do
    if not known[name] then found[#found + 1] = name end
  end
  return found
end

-- Has core/updates/answer_worker.py leave out what was ordered before now and is not sent to a person. `child`: only what it gets as a
-- guardian of this child, '' for all.
local function leave_out(tenant, name, person, child)
  local body = table.concat({ person, child, now }, '\n')
  NewTasks.add('answers', { name, tenant, '', 5, '', '', 'opted_out', '', '', '', '', body })
end

-- Has what was not sent yet left out if a person opts out of a channel, or is blocked, also as a guardian.
function People.note_opt_outs(tenant, id, old, user)
  for n, guardian in ipairs(without(user.blocked_guardians, old.blocked_guardians)) do
    leave_out(tenant, 'guardian.' .. user.version .. '.' .. n, guardian, id)
  end
  if #without(user.opt_out, old.opt_out) > 0 or user.blocked and not old.blocked then
    leave_out(tenant, 'opted-out.' .. user.version, id, '')
  end
end

-- Returns the contacts that a person has no more, each a line behind its id. They are noted: what was ordered before belongs to it no more
-- there (core/answers/current_people.py).
function People.removed_contacts(tenant, id, old, user)
  local lines, former = without(People.contacts_of(old), People.contacts_of(user)), Key.former_contacts(tenant, id)
  for n, contact in ipairs(lines) do
    redis_call('HSET', former, contact, now)
    lines[n] = id .. '\t' .. contact
  end
  if lines[1] then redis_call('PEXPIRE', former, Received.kept_ms()) end
  return lines
end

-- Has the person that stays of two know what the other one had and has no more, too.
function People.inherit_former_contacts(tenant, kept, other)
  local former, flat = Key.former_contacts(tenant, kept), redis_call('HGETALL', Key.former_contacts(tenant, other))
  for n = 1, #flat, 2 do redis_call('HSET', former, flat[n], flat[n + 1]) end
  if flat[1] then redis_call('PEXPIRE', former, Received.kept_ms()) end
  WriteBuffer.write('DEL', Key.former_contacts(tenant, other))
end

-- Has what was ordered before now and is not sent left out for removed contacts, which may be another person's by now.
function People.note_removed_contacts(tenant, name, lines)
  if #lines == 0 then return end
  local body = now .. '\n' .. table.concat(lines, '\n')
  NewTasks.add('answers', { 'contacts.' .. name, tenant, '', 5, '', '', 'removed_contacts', '', '', '', '', body })
end

function People.index_user(tenant, id, user)
  WriteBuffer.write('ZADD', Key.userids(tenant), 0, id)
  for _, name in ipairs(People.names_of(user, id)) do WriteBuffer.write('ZADD', Key.names(tenant), 0, name) end
  if user.email then WriteBuffer.write('HSET', Key.emails(tenant), user.email, id) end
  if user.role then WriteBuffer.write('ZADD', Key.role(tenant, user.role), 0, id) end
  for _, contact in ipairs(People.contacts_of(user)) do WriteBuffer.write('HSET', Key.contacts(tenant), contact, id) end
  for _, external in ipairs(user.external_ids or {}) do WriteBuffer.write('HSET', Key.external_ids(tenant), external, id) end
  for _, guardian in ipairs(People.guardians_of(user)) do WriteBuffer.write('ZADD', Key.children(tenant, guardian), 0, id) end
end

function People.unindex_user(tenant, id, user)
  WriteBuffer.write('ZREM', Key.userids(tenant), id)
  for _, name in ipairs(People.names_of(user, id)) do WriteBuffer.write('ZREM', Key.names(tenant), name) end
  if user.email then WriteBuffer.write('HDEL', Key.emails(tenant), user.email) end
  if user.role then WriteBuffer.write('ZREM', Key.role(tenant, user.role), id) end
  for _, contact in ipairs(People.contacts_of(user)) do WriteBuffer.write('HDEL', Key.contacts(tenant), contact) end
  for _, external in ipairs(user.external_ids or {}) do WriteBuffer.write('HDEL', Key.external_ids(tenant), external) end
  for _, guardian in ipairs(People.guardians_of(user)) do WriteBuffer.write('ZREM', Key.children(tenant, guardian), id) end
end

-- Deletes the subscriptions behind contacts that a person had and has no more.
function People.drop_subscriptions(tenant, old, user)
  local kept = {}
  for _, contact in ipairs(People.contacts_of(user)) do kept[contact] = true end
  for _, contact in ipairs(People.contacts_of(old)) do
    if not kept[contact] then WriteBuffer.write('HDEL', Key.subscriptions(tenant), contact) end
  end
end

function People.end_sessions(tenant, id)
  local sessions = Key.sessions(tenant, 'user:' .. id)
  for _, session in ipairs(redis_call('ZRANGE', sessions, 0, -1)) do redis_call('DEL', Key.session(session)) end
  redis_call('DEL', sessions)
end
