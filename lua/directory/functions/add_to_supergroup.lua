-- add_to_supergroup: add a group to a supergroup
-- ARGV    tenant, supergroup, group
-- RETURNS ["added"] or ["importing"] ["supergroup"] ["group", id] (there is none) ["limit"]
--         ["owner", user]: an owner of the supergroup does not own the group
-- EVENTS  none
-- INVARIANT I21 the owner of a supergroup owns each of its groups; a refusal writes nothing

return function(tenant, supergroup, group)
  if ImportLock.import_runs(tenant) then return { 'importing' } end
  if redis_call('HEXISTS', Key.supergroups(tenant), supergroup) == 0 then return { 'supergroup' } end
  if redis_call('ZSCORE', Key.parts(tenant, supergroup), group) then return { 'added' } end
  local refusal = Groups.refused_part(tenant, supergroup, { group })
  if refusal then return refusal end
  for _, user in ipairs(redis_call('ZRANGE', Key.owners(tenant, 'supergroup:' .. supergroup), 0, -1)) do
    if not redis_call('ZSCORE', Key.owned(tenant, user), 'group:' .. group) then return { 'owner', user } end
  end

  Groups.add_part(tenant, supergroup, group)
  return { 'added' }
end
