-- drop_runs: drop finished runs whose retention is over
-- ARGV    limit:int
-- RETURNS how many were dropped
-- EVENTS  none

return function(limit)
  return Runs.drop_ended_runs(limit)
end
