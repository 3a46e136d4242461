-- delete_supergroup: delete a supergroup and its ownerships; its groups stay
-- ARGV    tenant, id
-- RETURNS ["importing"], or 1, or 0 if there is no such supergroup
-- EVENTS  none
-- INVARIANT I20 no group names a deleted supergroup

return function(tenant, id)
  if ImportLock.import_runs(tenant) then return { 'importing' } end
  for _, group in ipairs(redis_call('ZRANGE', Key.parts(tenant, id), 0, -1)) do redis_call('ZREM', Key.wholes(tenant, group), id) end
  redis_call('DEL', Key.parts(tenant, id))
  Groups.remove_owners(tenant, 'supergroup:' .. id)
  redis_call('ZREM', Key.supergroupids(tenant), id)
  return redis_call('HDEL', Key.supergroups(tenant), id)
end
