-- repair_lane: gives a lane a first task and offers the lane as that task requires; removes `id` if it does not belong there
-- ARGV    tube, lane, id
--         id: "" for none
-- RETURNS one line for each change; none if nothing was wrong
-- EVENTS  del of the bell
-- INVARIANT I2, I3

return function(tube, lane, id)
  local is_behind = id ~= '' and redis_call('ZSCORE', Key.lane(tube, lane), id)
  if is_behind and not Repair.belongs(id, tube, lane) then Repair.drop_member(tube, lane, id) end
  Repair.repair_lane(tube, lane)
  return Repair.changes
end
