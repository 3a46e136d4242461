-- own: make a person an owner of a group or supergroup
-- ARGV    tenant, user, kind, id
--         kind: group or supergroup
-- RETURNS ["owned"] or ["importing"] ["user"] ["object"] (there is none) ["limit"]
--         ["group", id]: a group of the supergroup that the person does not own
-- EVENTS  none
-- INVARIANT I21 the owner of a supergroup owns each of its groups; a refusal writes nothing

return function(tenant, user, kind, id)
  if ImportLock.import_runs(tenant) then return { 'importing' } end
  local missing = Ownership.missing_for_ownership(tenant, user, kind, id)
  if missing then return { missing } end
  local object = kind .. ':' .. id
  local owned, owners = Key.owned(tenant, user), Key.owners(tenant, object)
  if redis_call('ZSCORE', owned, object) then return { 'owned' } end
  if redis_call('ZCARD', owned) >= RELATIONS or redis_call('ZCARD', owners) >= RELATIONS then return { 'limit' } end
  if kind == 'supergroup' then
    for _, group in ipairs(redis_call('ZRANGE', Key.members(tenant, kind, id), 0, -1)) do
      if not redis_call('ZSCORE', owned, 'group:' .. group) then return { 'group', group } end
    end
  end

  redis_call('ZADD', owned, 0, object)
  redis_call('ZADD', owners, 0, user)
  return { 'owned' }
end
