-- runs: lifetimes of the runs of scenarios

function Runs.retention_ms() return tonumber(redis_call('HGET', Key.settings(), 'retention_ms') or 30 * DAY_MS) end

-- Drops finished runs whose retention is over, at most `limit`. Returns how many.
function Runs.drop_ended_runs(limit)
  local overdue = redis_call('ZRANGEBYSCORE', Key.ended_runs(), '-inf', now, 'LIMIT', 0, limit)
  for _, run in ipairs(overdue) do redis_call('DEL', Key.run(run)) end
  if #overdue > 0 then redis_call('ZREM', Key.ended_runs(), unpack(overdue)) end
  return #overdue
end
