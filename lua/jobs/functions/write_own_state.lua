-- write_own_state: store the state of a job's own
-- ARGV    id, holder, place, own
--         own: as JSON; place: the name under which a repetition of the iteration finds it
-- RETURNS as check_attempt; after "lost" nothing was written
-- EVENTS  none
-- INVARIANT I24; only the attempt that began the iteration last writes

return function(id, holder, place, own)
  local state, is_late = JobAttempt.state(id, holder)
  if state ~= 'lost' then JobSteps.write_own(id, place, own, is_late) end
  return state
end
