-- repair_history: a delivery is in the indexes of its state and has the end of its state
-- ARGV    tenant, suffix
--         tenant: under whom an index names it
-- USES    outcome, repair
-- RETURNS what was done, a line each; none if it was in order
-- EVENTS  set of the order key
-- INVARIANT I6, I16

local history = history_key(suffix)
local facts = redis.call('HMGET', history, 'tenant', 'state', 'due', 'created', 'finished')
local keys = { history, outcomes_key(suffix), reached_key(suffix) }

local function leave(owner)
  stay_out(listed_key(owner), 'the list', suffix)
  stay_out(live_key(owner), 'the unfinished', suffix)
  stay_out(retained_key(), 'the retained', owner .. '|' .. suffix)
end

local function drop()
  leave(tenant)
  if split_suffix(suffix) then stay_out(due_key(), 'due', order_member(suffix)) end
  if redis.call('DEL', unpack(keys)) > 0 then note('what it left behind was dropped') end
end

local function retain(owner)
  stay_out(live_key(owner), 'the unfinished', suffix)
  local drop_at = redis.call('ZSCORE', retained_key(), owner .. '|' .. suffix)
  if not drop_at then
    drop_at = string.format('%.0f', now + tonumber(redis.call('HGET', settings_key(), 'retention_ms') or 30 * DAY_MS))
    be_in(retained_key(), 'the retained', owner .. '|' .. suffix, drop_at)
  end
  for _, key in ipairs(keys) do
    if redis.call('PTTL', key) == -1 then
      redis.call('PEXPIREAT', key, tonumber(drop_at) + DAY_MS)
      note('given an end')
    end
  end
end

local function keep_at_work(owner)
  be_in(live_key(owner), 'the unfinished', suffix, facts[4])
  stay_out(retained_key(), 'the retained', owner .. '|' .. suffix)
  for _, key in ipairs(keys) do
    if redis.call('PERSIST', key) == 1 then note('given no end') end
  end
end

local function schedule()
  if facts[2] ~= 'scheduled' then return stay_out(due_key(), 'due', order_member(suffix)) end
  be_in(due_key(), 'due', order_member(suffix), facts[3])
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
  be_in(listed_key(tenant), 'the list', suffix, facts[4])
  if facts[5] then retain(tenant) else keep_at_work(tenant) end
  schedule()
end
return did
