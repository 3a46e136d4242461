-- repair_history: puts a delivery into the indexes of its state and gives its keys the TTL of its state
-- ARGV    tenant, suffix
--         tenant: the tenant under which an index names it
-- RETURNS one line for each change; none if nothing was wrong
-- EVENTS  set of the order key
-- INVARIANT I6, I16

return function(tenant, suffix)
  local history = Key.history(suffix)
  local facts = redis_call('HMGET', history, 'tenant', 'state', 'due', 'created', 'finished')
  local keys = { history, Key.outcomes(suffix), Key.reached(suffix) }

  local function leave(owner)
    Repair.leave_index(Key.listed(owner), 'the listed', suffix)
    Repair.leave_index(Key.live(owner), 'the unfinished', suffix)
    Repair.leave_index(Key.retained(), 'the retained', owner .. '|' .. suffix)
  end

  local function drop()
    leave(tenant)
    if Plan.split_suffix(suffix) then Repair.leave_index(Key.due(), 'due', Plan.order_member(suffix)) end
    if redis_call('DEL', unpack(keys)) > 0 then Repair.note('remaining keys deleted') end
  end

  local function retain(owner)
    Repair.leave_index(Key.live(owner), 'the unfinished', suffix)
    local drop_at = redis_call('ZSCORE', Key.retained(), owner .. '|' .. suffix)
    if not drop_at then
      drop_at = string.format('%.0f', now + tonumber(redis_call('HGET', Key.settings(), 'retention_ms') or 30 * DAY_MS))
      Repair.enter_index(Key.retained(), 'the retained', owner .. '|' .. suffix, drop_at)
    end
    for _, key in ipairs(keys) do
      if redis_call('PTTL', key) == -1 then
        redis_call('PEXPIREAT', key, tonumber(drop_at) + DAY_MS)
        Repair.note('TTL set')
      end
    end
  end

  local function keep_unfinished(owner)
    Repair.enter_index(Key.live(owner), 'the unfinished', suffix, facts[4])
    Repair.leave_index(Key.retained(), 'the retained', owner .. '|' .. suffix)
    for _, key in ipairs(keys) do
      if redis_call('PERSIST', key) == 1 then Repair.note('TTL removed') end
    end
  end

  local function schedule()
    if facts[2] ~= 'scheduled' then return Repair.leave_index(Key.due(), 'due', Plan.order_member(suffix)) end
    Repair.enter_index(Key.due(), 'due', Plan.order_member(suffix), facts[3])
    if tonumber(facts[3]) > now and redis_call('EXISTS', Key.order(suffix)) == 0 then
      redis_call('SET', Key.order(suffix), 1, 'PXAT', facts[3])
      Repair.note('order key set')
    end
  end

  if not facts[1] then
    drop()
  elseif facts[1] ~= tenant then
    leave(tenant)
  elseif facts[2] and facts[3] and facts[4] then
    Repair.enter_index(Key.listed(tenant), 'the listed', suffix, facts[4])
    if facts[5] then retain(tenant) else keep_unfinished(tenant) end
    schedule()
  end
  return Repair.changes
end
