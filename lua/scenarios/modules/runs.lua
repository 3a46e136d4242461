-- runs: lifetimes of the runs of scenarios, and the lists in which they stand

function Runs.retention_ms() return tonumber(redis_call('HGET', Key.settings(), 'retention_ms') or 30 * DAY_MS) end

-- How long a run is stored that never ends.
function Runs.longest_ms() return Runs.retention_ms() + 90 * DAY_MS end

local function lists_of(tenant, scenarios)
  local lists = { Key.tenant_runs(tenant), Key.open_runs(tenant) }
  for _, scenario in ipairs(cjson.decode(scenarios)) do lists[#lists + 1] = Key.scenario_runs(tenant, scenario) end
  return lists
end

local function add(list, began, run)
  redis_call('ZADD', list, began, run)
  redis_call('ZREMRANGEBYSCORE', list, '-inf', now - Runs.longest_ms())
  redis_call('PEXPIRE', list, Runs.longest_ms())
end

-- Adds a run that begins to the lists of its tenant and of its scenarios (JSON).
function Runs.add_to_lists(run, tenant, scenarios)
  for _, list in ipairs(lists_of(tenant, scenarios)) do add(list, now, run) end
end

-- Counts an action that failed or is unknown.
function Runs.count_fault(run)
  local tenant, began = unpack(redis_call('HMGET', Key.run(run), 'tenant', 'began'))
  if redis_call('HINCRBY', Key.run(run), 'faults', 1) == 1 then add(Key.faulty_runs(tenant), began, run) end
end

-- Ends a run: its retention starts now.
function Runs.finish(run)
  local drop_at = now + Runs.retention_ms()
  redis_call('HSET', Key.run(run), 'ended', string.format('%.0f', now))
  redis_call('ZREM', Key.open_runs(redis_call('HGET', Key.run(run), 'tenant')), run)
  redis_call('ZADD', Key.ended_runs(), drop_at, run)
  -- If no run ends any more, the server drops the key by itself a day later.
  redis_call('PEXPIRE', Key.run(run), drop_at + DAY_MS - now)
  Runs.drop_ended_runs(10)
end

local function forget(run)
  local tenant, person, scenarios = unpack(redis_call('HMGET', Key.run(run), 'tenant', 'person', 'scenarios'))
  redis_call('DEL', Key.run(run))
  if not tenant then return end
  redis_call('ZREM', Key.runs(tenant, person), run)
  redis_call('ZREM', Key.faulty_runs(tenant), run)
  for _, list in ipairs(lists_of(tenant, scenarios)) do redis_call('ZREM', list, run) end
end

-- Forgets runs of a person, whether they are over or not; a process that is at one finds that it is gone. Returns how many.
function Runs.forget_person(tenant, person)
  local found = redis_call('ZRANGE', Key.runs(tenant, person), 0, 99)
  for _, run in ipairs(found) do
    forget(run)
    redis_call('ZREM', Key.ended_runs(), run)
    redis_call('ZREM', Key.runs(tenant, person), run)
  end
  return #found
end

-- Drops finished runs whose retention is over, at most `limit`. Returns how many.
function Runs.drop_ended_runs(limit)
  local overdue = redis_call('ZRANGEBYSCORE', Key.ended_runs(), '-inf', now, 'LIMIT', 0, limit)
  for _, run in ipairs(overdue) do forget(run) end
  if #overdue > 0 then redis_call('ZREM', Key.ended_runs(), unpack(overdue)) end
  return #overdue
end
