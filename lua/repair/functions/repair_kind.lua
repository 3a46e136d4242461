-- repair_kind: lists a kind iff a live task has it
-- ARGV    kind
-- RETURNS one line for each change; none if nothing was wrong
-- EVENTS  none
-- INVARIANT I6

return function(kind)
  if redis_call('EXISTS', Key.by('kind', kind)) == 0 then
    Repair.leave_index(Key.kinds(), 'the kinds', kind)
  else
    Repair.enter_index(Key.kinds(), 'the kinds', kind, 0)
  end
  return Repair.changes
end
