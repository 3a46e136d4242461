-- disown: withdraw an ownership; for a group, also the person's supergroups that contain it
-- ARGV    tenant, user, kind, id
--         kind: group or supergroup
-- RETURNS ["withdrawn", <kind>:<id>, …] or ["importing"] ["user"] ["object"]: there is none
-- EVENTS  none
-- INVARIANT I21 the owner of a supergroup owns each of its groups

return function(tenant, user, kind, id)
  if ImportLock.import_runs(tenant) then return { 'importing' } end
  local missing = Ownership.missing_for_ownership(tenant, user, kind, id)
  if missing then return { missing } end

  local withdrawn = { 'withdrawn' }
  local function withdraw(object)
    redis_call('ZREM', Key.owners(tenant, object), user)
    if redis_call('ZREM', Key.owned(tenant, user), object) == 1 then withdrawn[#withdrawn + 1] = object end
  end

  withdraw(kind .. ':' .. id)
  if kind == 'group' then
    for _, supergroup in ipairs(redis_call('ZRANGE', Key.member_of(tenant, 'supergroup', id), 0, -1)) do
      withdraw('supergroup:' .. supergroup)
    end
  end
  return withdrawn
end
