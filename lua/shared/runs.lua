-- runs: lifetimes of the runs of scenarios

local function retention_ms() return tonumber(redis.call('HGET', settings_key(), 'retention_ms') or 30 * DAY_MS) end

-- Drops finished runs whose retention is over, at most `limit`. Returns how many.
local function drop_ended_runs(limit)
  local overdue = redis.call('ZRANGEBYSCORE', ended_runs_key(), '-inf', now, 'LIMIT', 0, limit)
  for _, run in ipairs(overdue) do redis.call('DEL', run_key(run)) end
  if #overdue > 0 then redis.call('ZREM', ended_runs_key(), unpack(overdue)) end
  return #overdue
end
