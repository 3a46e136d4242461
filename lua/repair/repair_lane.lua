-- repair_lane: gives a lane a first task and offers the lane as that task requires; removes `id` if it does not belong there
-- ARGV    tube, lane, id
--         id: "" for none
-- USES    repair
-- RETURNS one line for each change; none if nothing was wrong
-- EVENTS  del of the bell
-- INVARIANT I2, I3

if id ~= '' and redis.call('ZSCORE', lane_key(tube, lane), id) and not belongs(id, tube, lane) then drop_member(tube, lane, id) end
repair_lane(tube, lane)
return changes
