-- update_user: replace the record of a person, if it has not changed meanwhile
-- ARGV    tenant, id, version, record
--         version: that of the record from which this one was made
-- RETURNS ["updated"] or ["importing"] ["changed"] ["email"] ["contact", channel:address] ["external_id", system:id] ["guardian", id]
-- EVENTS  for deliveries that fell due before, with the task of a person that gets fewer messages: outcomes, reported, released, finished
-- INVARIANT I19 an e-mail address, a contact and an external id belong to one person, and a guardian exists; a refusal writes nothing

return function(tenant, id, version, record)
  local stored = redis_call('HGET', Key.users(tenant), id)
  if not stored then return { 'changed' } end
  local old, user = cjson.decode(stored), cjson.decode(record)
  if old.version == user.version then return { 'updated' } end
  if ImportLock.import_runs(tenant) then return { 'importing' } end
  if old.version ~= version then return { 'changed' } end
  local taken = People.taken_by_another(tenant, id, user) or People.unknown_guardian(tenant, user)
  if taken then return taken end

  WriteBuffer.gather()
  People.unindex_user(tenant, id, old)
  People.index_user(tenant, id, user)
  People.drop_subscriptions(tenant, old, user)
  WriteBuffer.write('HSET', Key.users(tenant), id, record)
  People.note_opt_outs(tenant, id, old, user)
  People.note_removed_contacts(tenant, user.version, People.removed_contacts(tenant, id, old, user))
  WriteBuffer.write_gathered()
  return { 'updated' }
end
