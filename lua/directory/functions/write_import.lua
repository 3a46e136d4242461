-- write_import: write the next page of a committed import
-- ARGV    tenant, idle_ms:int
--         idle_ms: leave the import to its process if that has written a page within this time; 0: do not
-- RETURNS the number of pages that are left; 0 also if there is no import; -1 if another process is at work on it
-- EVENTS  none
-- INVARIANT all pages or none: a page is written and counted in one step, so each is written once, in order

return function(tenant, idle_ms)
  local lock, pages = Key.import(tenant), Key.importpages(tenant)
  local state, number, count, beat, token = unpack(redis_call('HMGET', lock, 'state', 'next', 'pages', 'beat', 'token'))
  if not state then
    redis_call('ZREM', Key.imports(), tenant)
    return 0
  end
  if state ~= 'writing' or now - tonumber(beat) < idle_ms then return -1 end

  -- The checks of the import make sure that no value goes from one person to another, so the order of the gathered writes does not matter.
  local users, userids, emails, contacts = Key.users(tenant), Key.userids(tenant), Key.emails(tenant), Key.contacts(tenant)

  local function write_contacts(id, old, new)
    local had, has = {}, {}
    for _, contact in ipairs(People.contacts_of(old)) do had[contact] = true end
    for _, contact in ipairs(People.contacts_of(new)) do
      has[contact] = true
      if not had[contact] then WriteBuffer.write('HSET', contacts, contact, id) end
    end
    for contact in pairs(had) do
      if not has[contact] then WriteBuffer.write('HDEL', contacts, contact) end
    end
  end

  local function write_email(id, old, new)
    if old.email == new.email then return end
    if old.email then WriteBuffer.write('HDEL', emails, old.email) end
    if new.email then WriteBuffer.write('HSET', emails, new.email, id) end
  end

  local function write_role(id, old, new)
    if old.role == new.role then return end
    if old.role then WriteBuffer.write('ZREM', Key.role(tenant, old.role), id) end
    if new.role then WriteBuffer.write('ZADD', Key.role(tenant, new.role), 0, id) end
  end

  local write_step = {}

  function write_step.user(id, record)
    local stored, old, new = redis_call('HGET', users, id), {}, cjson.decode(record)
    if stored then
      -- A record that another program has damaged must not stop the import for ever.
      local is_readable, read = pcall(cjson.decode, stored)
      if is_readable and type(read) == 'table' then old = read end
    end
    WriteBuffer.write('HSET', users, id, record)
    if not stored then WriteBuffer.write('ZADD', userids, 0, id) end
    write_email(id, old, new)
    write_role(id, old, new)
    write_contacts(id, old, new)
  end

  function write_step.group(id, record)
    WriteBuffer.write('HSET', Key.groups(tenant), id, record)
    WriteBuffer.write('ZADD', Key.groupids(tenant), 0, id)
  end

  function write_step.member(group, user)
    WriteBuffer.write('ZADD', Key.members(tenant, group), 0, user)
    WriteBuffer.write('ZADD', Key.memberships(tenant, user), 0, group)
  end

  function write_step.supergroup(id, record)
    WriteBuffer.write('HSET', Key.supergroups(tenant), id, record)
    WriteBuffer.write('ZADD', Key.supergroupids(tenant), 0, id)
  end

  function write_step.part(supergroup, group)
    WriteBuffer.write('ZADD', Key.parts(tenant, supergroup), 0, group)
    WriteBuffer.write('ZADD', Key.wholes(tenant, group), 0, supergroup)
  end

  function write_step.unpart(supergroup, group)
    WriteBuffer.write('ZREM', Key.parts(tenant, supergroup), group)
    WriteBuffer.write('ZREM', Key.wholes(tenant, group), supergroup)
  end

  function write_step.own(user, object)
    WriteBuffer.write('ZADD', Key.owned(tenant, user), 0, object)
    WriteBuffer.write('ZADD', Key.owners(tenant, object), 0, user)
  end

  local page = redis_call('HGET', pages, number)
  if page then
    WriteBuffer.gather()
    for _, step in ipairs(cmsgpack.unpack(page)) do write_step[step[1]](step[2], step[3]) end
    WriteBuffer.write_gathered()
    redis_call('HDEL', pages, number)
  end
  redis_call('HSET', lock, 'next', number + 1, 'beat', now)
  local left = count - number - 1
  if left <= 0 then
    redis_call('DEL', lock, pages)
    redis_call('ZREM', Key.imports(), tenant)
    redis_call('SET', Key.imported(tenant, token), 1, 'EX', 600)
    return 0
  end
  return left
end
