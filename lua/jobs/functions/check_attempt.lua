-- check_attempt: return what an attempt at an iteration may still do
-- ARGV    id, holder
-- RETURNS the state of the job; "lost" if another attempt has the job; "stopped" if it was stopped meanwhile, even if it
--         was started again
-- EVENTS  none

return function(id, holder)
  return (JobAttempt.state(id, holder))
end
