-- add_members: add people to a group, or groups to a supergroup, all or none
-- ARGV    tenant, kind, id, members:rest
--         kind: group or supergroup; members: at most 500
-- RETURNS ["added"] or ["importing"] ["collection"] (there is none) ["member", id] (there is none)
--         ["limit", id]: it is in too many collections, or the collection is full
--         ["owner", user, group]: an owner of the supergroup does not own the group
-- EVENTS  none
-- INVARIANT I20 I21 collections and their members name each other; the owner of a supergroup owns each of its groups

return function(tenant, kind, id, members)
  if ImportLock.import_runs(tenant) then return { 'importing' } end
  if not Collections.exists(tenant, kind, id) then return { 'collection' } end
  local new = Collections.new_members(tenant, kind, id, members)
  local refusal = Collections.refused_members(tenant, kind, id, new)
  if refusal then return refusal end

  WriteBuffer.gather()
  for _, member in ipairs(new) do Collections.add_member(tenant, kind, id, member) end
  WriteBuffer.write_gathered()
  return { 'added' }
end
