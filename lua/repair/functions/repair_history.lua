-- repair_history: puts a delivery into the indexes of its state and gives its keys the TTL of its state
-- ARGV    tenant, suffix
--         tenant: the tenant under which an index names it
-- RETURNS one line for each change; none if nothing was wrong
-- EVENTS  set of the order key
-- INVARIANT I6, I16

local function keys_of(suffix) return { Key.history(suffix), Key.outcomes(suffix), Key.reached(suffix) } end

local function leave_indexes(suffix, owner)
  Repair.leave_index(Key.listed(owner), 'the listed', suffix)
  Repair.leave_index(Key.live(owner), 'the unfinished', suffix)
  Repair.leave_index(Key.retained(), 'the retained', owner .. '|' .. suffix)
end

local function drop(suffix, owner)
  leave_indexes(suffix, owner)
  if Plan.split_suffix(suffix) then Repair.leave_index(Key.due(), 'due', Plan.order_member(suffix)) end
  if redis_call('DEL', unpack(keys_of(suffix))) > 0 then Repair.note('remaining keys deleted') end
end

local function retain(suffix, owner)
  Repair.leave_index(Key.live(owner), 'the unfinished', suffix)
  local drop_at = redis_call('ZSCORE', Key.retained(), owner .. '|' .. suffix)
  if not drop_at then
    local asks = redis_call('HGET', Key.history(suffix), 'answers_code')
    drop_at = string.format('%.0f', now + DeliveryEnd.retention_ms(asks))
    Repair.enter_index(Key.retained(), 'the retained', owner .. '|' .. suffix, drop_at)
  end
  for _, key in ipairs(keys_of(suffix)) do
    if redis_call('PTTL', key) == -1 then
      redis_call('PEXPIREAT', key, tonumber(drop_at) + DAY_MS)
      Repair.note('TTL set')
    end
  end
end

local function keep_unfinished(suffix, owner, created)
  Repair.enter_index(Key.live(owner), 'the unfinished', suffix, created)
  Repair.leave_index(Key.retained(), 'the retained', owner .. '|' .. suffix)
  for _, key in ipairs(keys_of(suffix)) do
    if redis_call('PERSIST', key) == 1 then Repair.note('TTL removed') end
  end
end

local function schedule(suffix, state, due)
  if state ~= 'scheduled' then return Repair.leave_index(Key.due(), 'due', Plan.order_member(suffix)) end
  Repair.enter_index(Key.due(), 'due', Plan.order_member(suffix), due)
  if tonumber(due) > now and redis_call('EXISTS', Key.order(suffix)) == 0 then
    redis_call('SET', Key.order(suffix), 1, 'PXAT', due)
    Repair.note('order key set')
  end
end

return function(tenant, suffix)
  local facts = redis_call('HMGET', Key.history(suffix), 'tenant', 'state', 'due', 'created', 'finished')
  local owner, state, due, created, finished = unpack(facts)
  if not owner then
    drop(suffix, tenant)
  elseif owner ~= tenant then
    leave_indexes(suffix, tenant)
  elseif state and due and created then
    Repair.enter_index(Key.listed(tenant), 'the listed', suffix, created)
    if finished then retain(suffix, tenant) else keep_unfinished(suffix, tenant, created) end
    schedule(suffix, state, due)
  end
  return Repair.changes
end
