-- add_to_supergroup: add a group to a supergroup
-- ARGV    tenant, supergroup, group
-- USES    groups, import_lock
-- RETURNS ["added"] or ["importing"] ["supergroup"] ["group", id] (there is none) ["limit"]
--         ["owner", user]: an owner of the supergroup does not own the group
-- EVENTS  none
-- INVARIANT I21 the owner of a supergroup owns each of its groups; a refusal writes nothing

if import_runs(tenant) then return { 'importing' } end
if redis.call('HEXISTS', supergroups_key(tenant), supergroup) == 0 then return { 'supergroup' } end
if redis.call('ZSCORE', parts_key(tenant, supergroup), group) then return { 'added' } end
local refusal = refused_part(tenant, supergroup, { group })
if refusal then return refusal end
for _, user in ipairs(redis.call('ZRANGE', owners_key(tenant, 'supergroup:' .. supergroup), 0, -1)) do
  if not redis.call('ZSCORE', owned_key(tenant, user), 'group:' .. group) then return { 'owner', user } end
end

add_part(tenant, supergroup, group)
return { 'added' }
