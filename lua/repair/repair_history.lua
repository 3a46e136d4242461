-- repair_history: puts a delivery into the indexes of its state and gives its keys the TTL of its state
-- ARGV    tenant, suffix
--         tenant: the tenant under which an index names it
-- USES    plan, repair
-- RETURNS one line for each change; none if nothing was wrong
-- EVENTS  set of the order key
-- INVARIANT I6, I16

local history = history_key(suffix)
local facts = redis.call('HMGET', history, 'tenant', 'state', 'due', 'created', 'finished')
local keys = { history, outcomes_key(suffix), reached_key(suffix) }

local function leave(owner)
  leave_index(listed_key(owner), 'the listed', suffix)
  leave_index(live_key(owner), 'the unfinished', suffix)
  leave_index(retained_key(), 'the retained', owner .. '|' .. suffix)
end

local function drop()
  leave(tenant)
  if split_suffix(suffix) then leave_index(due_key(), 'due', order_member(suffix)) end
  if redis.call('DEL', unpack(keys)) > 0 then note('remaining keys deleted') end
end

local function retain(owner)
  leave_index(live_key(owner), 'the unfinished', suffix)
  local drop_at = redis.call('ZSCORE', retained_key(), owner .. '|' .. suffix)
  if not drop_at then
    drop_at = string.format('%.0f', now + tonumber(redis.call('HGET', settings_key(), 'retention_ms') or 30 * DAY_MS))
    enter_index(retained_key(), 'the retained', owner .. '|' .. suffix, drop_at)
  end
  for _, key in ipairs(keys) do
    if redis.call('PTTL', key) == -1 then
      redis.call('PEXPIREAT', key, tonumber(drop_at) + DAY_MS)
      note('TTL set')
    end
  end
end

local function keep_unfinished(owner)
  enter_index(live_key(owner), 'the unfinished', suffix, facts[4])
  leave_index(retained_key(), 'the retained', owner .. '|' .. suffix)
  for _, key in ipairs(keys) do
    if redis.call('PERSIST', key) == 1 then note('TTL removed') end
  end
end

local function schedule()
  if facts[2] ~= 'scheduled' then return leave_index(due_key(), 'due', order_member(suffix)) end
  enter_index(due_key(), 'due', order_member(suffix), facts[3])
  if tonumber(facts[3]) > now and redis.call('EXISTS', order_key(suffix)) == 0 then
    redis.call('SET', order_key(suffix), 1, 'PXAT', facts[3])
    note('order key set')
  end
end

if not facts[1] then
  drop()
elseif facts[1] ~= tenant then
  leave(tenant)
elseif facts[2] and facts[3] and facts[4] then
  enter_index(listed_key(tenant), 'the listed', suffix, facts[4])
  if facts[5] then retain(tenant) else keep_unfinished(tenant) end
  schedule()
end
return changes
