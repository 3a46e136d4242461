-- remove_from_supergroup: take a group out of a supergroup
-- ARGV    tenant, supergroup, group
-- RETURNS ["removed"] or ["importing"] ["supergroup"] ["group", id]: there is none
-- EVENTS  none
-- INVARIANT I20 supergroups and their groups name each other

return function(tenant, supergroup, group)
  if ImportLock.import_runs(tenant) then return { 'importing' } end
  if redis_call('HEXISTS', Key.supergroups(tenant), supergroup) == 0 then return { 'supergroup' } end
  if redis_call('HEXISTS', Key.groups(tenant), group) == 0 then return { 'group', group } end

  redis_call('ZREM', Key.parts(tenant, supergroup), group)
  redis_call('ZREM', Key.wholes(tenant, group), supergroup)
  return { 'removed' }
end
