-- add_members: add people to a group, all or none
-- ARGV    tenant, group, users:rest
--         users: at most 500
-- RETURNS ["added"] or ["importing"] ["group"] (there is none) ["user", id] (there is none) ["limit", user] (it is in too many groups)
-- EVENTS  none
-- INVARIANT I20 members and memberships agree; a refusal writes nothing

return function(tenant, group, users)
  if ImportLock.import_runs(tenant) then return { 'importing' } end
  if redis_call('HEXISTS', Key.groups(tenant), group) == 0 then return { 'group' } end
  local refusal = Groups.refused_member(tenant, group, users)
  if refusal then return refusal end

  Groups.add_members_to(tenant, group, users)
  return { 'added' }
end
