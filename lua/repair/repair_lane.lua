-- repair_lane: let somebody stand first in a lane, and offer it as that task says; `id` leaves it if it has no business there
-- ARGV    tube, lane, id
--         id: "" for none
-- USES    write_buffer, ready, repair
-- RETURNS what was done, a line each; none if it was in order
-- EVENTS  del of the bell
-- INVARIANT I2, I3

if id ~= '' and redis.call('ZSCORE', lane_key(tube, lane), id) and not belongs(id, tube, lane) then drop_member(tube, lane, id) end
set_lane_right(tube, lane)
return did
