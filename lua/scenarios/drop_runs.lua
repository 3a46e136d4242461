-- drop_runs: drop finished runs whose retention is over
-- ARGV    limit:int
-- USES    runs
-- RETURNS how many were dropped
-- EVENTS  none

return drop_ended_runs(limit)
