-- drop_run: end a run without its remaining actions
-- ARGV    run
-- RETURNS "dropped"; "over" if it is over already; "missing" if there is no such run
-- EVENTS  none

return function(run)
  local stored, ended = unpack(redis_call('HMGET', Key.run(run), 'entries', 'ended'))
  if not stored then return 'missing' end
  if ended then return 'over' end
  redis_call('HSET', Key.run(run), 'dropped', 1)
  Runs.finish(run)
  return 'dropped'
end
