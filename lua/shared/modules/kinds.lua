-- kinds: what the steps of the queue do differently for each kind of task
-- A plain task is what a caller puts (queue/modules/plain_task.lua); a parcel is a part of a delivery (delivery/modules/parcel_task.lua).
-- Each kind has the same functions, named after the steps:
--
--     load          a task is read          settle        an attempt ends; returns whether the task goes on
--     attach        a worker claims it      put_back      it waits for its next attempt
--     record        its lease is extended   most_attempts how many attempts it has
--     release       it is given back; returns whether nothing is left to do
--     lose          its lease has run out; returns the same
--     promote       it falls due; returns how much work that was, or nil if it becomes ready
--     cancel, expire, withdraw (by its id)  it ends
--     has_progress  whether earlier steps may have left facts in `progress`
--     end_work      how much work it is to end it after its lease has run out
--     drop_ended    drops what has been kept since its end
--
-- INDEXED: whether its own indexes lead to it, and whether its tube may keep it after its end.

function Kinds.of(task) return task.history and ParcelTask or PlainTask end

-- Releases a member of the due index that is no task, a delivery. Returns how many tasks were made; nil for a task.
function Kinds.release(member) return ParcelTask.release_delivery(member) end

-- Returns whether this call may still end tasks: to end a parcel may be much work. What is left is ended by the next call.
function Kinds.may_end() return Parcels.may_close() end

-- Returns whether more may be left to drop.
function Kinds.drop_ended()
  local is_left = PlainTask.drop_ended()
  return ParcelTask.drop_ended() or is_left
end

-- A new call, and each round of what is due, may end as many parcels again.
function Kinds.begin() Parcels.begin() end
