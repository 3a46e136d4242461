-- delete_collection: delete a group or supergroup and its ownerships; take a page of its members out
-- ARGV    tenant, kind, id
-- RETURNS ["importing"], or the number of members that are left; call again until it is 0
-- EVENTS  none
-- INVARIANT I20 after the first call a group is in no supergroup, and nothing owns or joins what was deleted

return function(tenant, kind, id)
  -- A deletion that has begun goes on: an import does not create a collection that still has members.
  if ImportLock.import_runs(tenant) and Collections.exists(tenant, kind, id) then return { 'importing' } end
  WriteBuffer.gather()
  WriteBuffer.write('HDEL', Key.collections(tenant, kind), id)
  WriteBuffer.write('ZREM', Key.collectionids(tenant, kind), id)
  if kind == 'group' then Collections.remove_from_all(tenant, 'supergroup', id) end
  Collections.remove_owners(tenant, kind, id)
  Collections.remove_page(tenant, kind, id)
  WriteBuffer.write_gathered()
  return redis_call('ZCARD', Key.members(tenant, kind, id))
end
