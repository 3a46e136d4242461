-- merge_users: make one person of two: the one that stays gets the groups and ownerships of the other, which is deleted
-- ARGV    tenant, kept, other, version, other_version, record
--         record: the person that stays, made from the records of both versions; its version identifies this call
-- RETURNS ["merged"] or ["importing"] ["changed"] (one of the records has) ["limit"] (of groups or ownerships) ["guardian"] (of a child)
-- EVENTS  for deliveries that fell due before, with the task of a person that gets fewer messages: outcomes, reported, released, finished
-- INVARIANT I19 I20 I21; a refusal writes nothing

local function decoded(record) return record and cjson.decode(record) end

-- Returns whether the members of both sorted sets fit into one person's.
local function fits(one, another)
  local count = redis_call('ZCARD', one)
  for _, member in ipairs(redis_call('ZRANGE', another, 0, -1)) do
    if not redis_call('ZSCORE', one, member) then count = count + 1 end
  end
  return count <= RELATIONS
end

return function(tenant, kept, other, version, other_version, record)
  local new = cjson.decode(record)
  local one = decoded(redis_call('HGET', Key.users(tenant), kept))
  if one and one.version == new.version then return { 'merged' } end
  if ImportLock.import_runs(tenant) then return { 'importing' } end
  local another = decoded(redis_call('HGET', Key.users(tenant), other))
  if not one or not another or one.version ~= version or another.version ~= other_version then return { 'changed' } end
  if People.is_guardian(tenant, other) then return { 'guardian' } end
  local owned, groups = Key.owned(tenant, other), Key.member_of(tenant, 'group', other)
  if not fits(Key.owned(tenant, kept), owned) or not fits(Key.member_of(tenant, 'group', kept), groups) then return { 'limit' } end

  WriteBuffer.gather()
  People.unindex_user(tenant, other, another)
  People.unindex_user(tenant, kept, one)
  for _, group in ipairs(redis_call('ZRANGE', groups, 0, -1)) do
    Collections.remove_member(tenant, 'group', group, other)
    Collections.add_member(tenant, 'group', group, kept)
  end
  for _, object in ipairs(redis_call('ZRANGE', owned, 0, -1)) do
    WriteBuffer.write('ZREM', Key.owners(tenant, object), other)
    WriteBuffer.write('ZREM', owned, object)
    WriteBuffer.write('ZADD', Key.owners(tenant, object), 0, kept)
    WriteBuffer.write('ZADD', Key.owned(tenant, kept), 0, object)
  end
  People.index_user(tenant, kept, new)
  People.drop_subscriptions(tenant, one, new)
  People.drop_subscriptions(tenant, another, new)
  People.end_sessions(tenant, other)
  WriteBuffer.write('HDEL', Key.users(tenant), other)
  WriteBuffer.write('HSET', Key.users(tenant), kept, record)
  People.note_opt_outs(tenant, kept, one, new)
  People.inherit_former_contacts(tenant, kept, other)
  WriteBuffer.write_gathered()
  return { 'merged' }
end
