-- repair_kind: a kind can be found while a live task has it, and not otherwise
-- ARGV    kind
-- USES    repair
-- RETURNS what was done, a line each; none if it was in order
-- EVENTS  none
-- INVARIANT I6

if redis.call('EXISTS', by_key('kind', kind)) == 0 then
  stay_out(kinds_key(), 'the kinds', kind)
else
  be_in(kinds_key(), 'the kinds', kind, 0)
end
return did
