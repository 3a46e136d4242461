-- pause: no task of a tube is claimed until it is resumed; tasks that are taken are finished, and tasks still expire
-- ARGV    tube, note
--         note: who paused it, why and when, for operators
-- RETURNS 1, or 0 if it was paused before, whose note stays
-- EVENTS  none

return function(tube, note)
  return redis_call('HSETNX', Key.options(), tube .. ':paused', note)
end
