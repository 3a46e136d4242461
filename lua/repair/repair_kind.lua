-- repair_kind: lists a kind iff a live task has it
-- ARGV    kind
-- USES    repair
-- RETURNS one line for each change; none if nothing was wrong
-- EVENTS  none
-- INVARIANT I6

if redis.call('EXISTS', by_key('kind', kind)) == 0 then
  leave_index(kinds_key(), 'the kinds', kind)
else
  enter_index(kinds_key(), 'the kinds', kind, 0)
end
return changes
