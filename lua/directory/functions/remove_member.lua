-- remove_member: take a person out of a group, or a group out of a supergroup
-- ARGV    tenant, kind, id, member
-- RETURNS ["removed"] or ["importing"] ["collection"] ["member", id]: there is none
-- EVENTS  none
-- INVARIANT I20 collections and their members name each other

return function(tenant, kind, id, member)
  if ImportLock.import_runs(tenant) then return { 'importing' } end
  if not Collections.exists(tenant, kind, id) then return { 'collection' } end
  if not Collections.member_exists(tenant, kind, member) then return { 'member', member } end

  Collections.remove_member(tenant, kind, id, member)
  return { 'removed' }
end
