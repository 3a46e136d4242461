-- create_user: store a new person
-- ARGV    tenant, id, record
--         record: the person as JSON; its version identifies this call
-- RETURNS ["created"] or ["importing"] ["exists"] ["email"] ["contact", channel:address] ["external_id", system:id] ["guardian", id]
-- EVENTS  none
-- INVARIANT I19 an e-mail address, a contact and an external id belong to one person, and a guardian exists; a refusal writes nothing

return function(tenant, id, record)
  local user = cjson.decode(record)
  local stored = redis_call('HGET', Key.users(tenant), id)
  if stored then return { cjson.decode(stored).version == user.version and 'created' or 'exists' } end
  if ImportLock.import_runs(tenant) then return { 'importing' } end
  local taken = People.taken_by_another(tenant, id, user) or People.unknown_guardian(tenant, user)
  if taken then return taken end

  WriteBuffer.gather()
  WriteBuffer.write('HSET', Key.users(tenant), id, record)
  People.index_user(tenant, id, user)
  WriteBuffer.write_gathered()
  return { 'created' }
end
