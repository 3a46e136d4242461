-- own: make a person an owner of a group or supergroup
-- ARGV    tenant, user, kind, id
--         kind: group or supergroup
-- USES    ownership, import_lock
-- RETURNS ["owned"] or ["importing"] ["user"] ["object"] (there is none) ["limit"]
--         ["group", id]: a group of the supergroup that the person does not own
-- EVENTS  none
-- INVARIANT I21 the owner of a supergroup owns each of its groups; a refusal writes nothing

if import_runs(tenant) then return { 'importing' } end
local missing = missing_for_ownership(tenant, user, kind, id)
if missing then return { missing } end
local object = kind .. ':' .. id
local owned, owners = owned_key(tenant, user), owners_key(tenant, object)
if redis.call('ZSCORE', owned, object) then return { 'owned' } end
if redis.call('ZCARD', owned) >= RELATIONS or redis.call('ZCARD', owners) >= RELATIONS then return { 'limit' } end
if kind == 'supergroup' then
  for _, group in ipairs(redis.call('ZRANGE', parts_key(tenant, id), 0, -1)) do
    if not redis.call('ZSCORE', owned, 'group:' .. group) then return { 'group', group } end
  end
end

redis.call('ZADD', owned, 0, object)
redis.call('ZADD', owners, 0, user)
return { 'owned' }
