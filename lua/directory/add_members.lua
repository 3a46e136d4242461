-- add_members: add people to a group, all or none
-- ARGV    tenant, group, users:rest
--         users: at most 500
-- USES    groups, import_lock
-- RETURNS ["added"] or ["importing"] ["group"] (there is none) ["user", id] (there is none) ["limit", user] (it is in too many groups)
-- EVENTS  none
-- INVARIANT I20 members and memberships agree; a refusal writes nothing

if import_runs(tenant) then return { 'importing' } end
if redis.call('HEXISTS', groups_key(tenant), group) == 0 then return { 'group' } end
local refusal = refused_member(tenant, group, users)
if refusal then return refusal end

add_members_to(tenant, group, users)
return { 'added' }
