-- parcel_task: a part of a delivery for one channel, as a task with many outcomes (kinds.lua)
-- Each of its open entries has attempts of its own, so the task has no limit. It is found through its delivery.

ParcelTask.INDEXED = false

-- Ended deliveries that one call drops.
local DROPS = 10

function ParcelTask.load(id, task) task.left = tonumber(redis_call('HGET', Key.progress(id), 'left') or '0') end

function ParcelTask.has_progress() return true end

function ParcelTask.attach(row, id, task, started)
  local channel, n = string.match(id, '%.([^.]+)%.(%d+)$')
  local fields = Damaged.read_hash(Key.history(task.history), 'parcel:' .. channel .. ':' .. n, 'text', 'closed', 'content', 'answer',
    'replies', 'leave_out')
  if fields[1] and fields[7] and not Plan.is_reminder(channel) then
    local has_left_out
    has_left_out, row[6] = FollowUp.leave_out(id, task, fields[1], fields[7], row[6], started)
    if has_left_out then fields[3] = '1' end
  end
  row[13], row[14], row[15], row[16] = task.history, fields[1] or '', fields[2] or '', fields[3] or ''
  row[17] = task.place and string.format('%.0f', task.place) or ''
  row[18] = fields[4] or (fields[5] or fields[6]) and '' or nil
  row[19] = fields[5] or fields[6] and '' or nil
  row[20] = fields[6] or nil
end

function ParcelTask.record(id, task, outcomes)
  if #outcomes == 0 then return '' end
  local unwanted = task.place == ASKS_AGAIN and Reminders.take_unwanted(id, task, outcomes) or ''
  Parcels.close_items(id, task, outcomes)
  return unwanted
end

function ParcelTask.release(id, task)
  Parcels.close_skipped(id, task)
  return task.left == 0
end

function ParcelTask.lose(id, task)
  Unclear.mark_lost(id)
  return ParcelTask.release(id, task)
end

-- A ready parcel that was started lost its worker: many entries may be unclear.
function ParcelTask.end_work(started) return started and Due.PAGE or 1 end

-- In a delivery with the strategy `first`, the parcels of later channels wait outside the lane.
local function awaits_earlier(task) return task.place and task.place > 1 end

function ParcelTask.promote(id, task) return awaits_earlier(task) and NextChannel.decide_next(id, task) or nil end

function ParcelTask.settle(id, task, attempt)
  Parcels.close_items(id, task, attempt.outcomes)
  if task.left <= 0 then return false end
  Parcels.close_skipped(id, task)
  -- What a lost worker may have sent is among the unclear entries of this attempt.
  redis_call('HDEL', Key.progress(id), 'lost')
  return task.left > 0
end

function ParcelTask.most_attempts(task) return task.attempts + 1 end

-- Returns "waiting" or "ready".
function ParcelTask.put_back(id, task, attempt)
  redis_call('HSET', Key.progress(id), 'checkpoint', attempt.checkpoint)
  -- Without a checkpoint every entry had ended for the worker. What is open here was lost with a primary: as after a crash, the next
  -- claim finds out which entries may have been sent.
  if attempt.checkpoint ~= '' then task.attempts = nil end
  if not awaits_earlier(task) then return Task.return_at(id, task, attempt.due) end
  -- Some of its entries may wait for earlier channels: the next tick decides when the next of them are attempted (next_channel.lua).
  Timers.new_moment(now)
  Task.put_off(id, task, now)
  return 'waiting'
end

function ParcelTask.cancel(id, task) Parcels.close_parcel(id, task, 'cancelled') end

function ParcelTask.withdraw(id, task)
  if not Plan.is_reminder(Plan.label_in(id)) then redis_call('HSET', Key.history(task.history), 'withdrawn', 1) end
  ParcelTask.cancel(id, task)
end

function ParcelTask.expire(id, task)
  if not Plan.is_reminder(Plan.label_in(id)) then redis_call('HSET', Key.history(task.history), 'lapsed', 1) end
  Parcels.close_parcel(id, task, 'expired')
end

-- Releases the delivery that a member of the due index names. Returns the number of tasks made; nil for another member.
function ParcelTask.release_delivery(member)
  local ns, sender = string.match(member, '^order:(%d+):(.*)$')
  if not ns then return nil end
  WriteBuffer.write('ZREM', Key.due(), member)
  return Parcels.release_delivery(sender .. ':' .. ns)
end

local function drop_history(member)
  local tenant, suffix = string.match(member, '^([^|]*)|(.*)$')
  redis_call('ZREM', Key.retained(), member)
  redis_call('ZREM', Key.listed(tenant), suffix)
  redis_call('DEL', Key.history(suffix), Key.outcomes(suffix), Key.reached(suffix), Key.exchanges(suffix))
end

-- Drops ended deliveries whose retention is over.
function ParcelTask.drop_ended()
  local ended = Due.overdue(Key.retained(), DROPS)
  for _, member in ipairs(ended) do drop_history(member) end
  return #ended == DROPS
end
