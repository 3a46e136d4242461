-- settle: tell the end of an attempt. Outcomes are written and the lane is freed, or the rest put off, in this one step
-- ARGV    id, token, result, due:int, checkpoint, unclear:int, outcomes:json
--         result: done, failed, retry; a parcel with open entries is always put off until `due` (0: takeable at once)
--         checkpoint: what the next attempt gets; unclear: 1 if some of the rest may have been sent by this attempt
-- USES    ready, outcome, parcels
-- RETURNS ["settled", "done" | "failed" | "waiting" | "ready" | "cancelled"] or ["stale"]
-- EVENTS  outcomes, reported, finished
-- INVARIANT I8 an old token changes nothing; I11 what was cancelled is not retried; I15 the lane is never left stuck

local key = task_key(id)
local task = read_task(id)
if not task or task.token ~= token or task.state ~= 'taken' then return { 'stale' } end

local function settle_parcel()
  close_items(id, task, outcomes)
  if task.left > 0 then close_skipped(id, task, 'cancelled', '') end
end

local function put_back()
  redis.call('HSET', key, 'checkpoint', checkpoint)
  redis.call('HDEL', key, 'token', 'owner')
  if unclear == 0 then redis.call('HDEL', key, 'started', 'attempts') end
  count(task.tube, 'retried')
  if due <= now then
    give_back(id, task)
    return { 'settled', 'ready' }
  end
  new_moment(due)
  put_off(id, task, due)
  return { 'settled', 'waiting' }
end

if task.history then settle_parcel() end
local open = task.history and task.left > 0 or not task.history and result == 'retry'
if not open then
  local final = result == 'failed' and 'failed' or 'done'
  end_task(id, task, final)
  return { 'settled', final }
end
if redis.call('HEXISTS', key, 'cancel') == 1 then
  cancel_task(id, task)
  return { 'settled', 'cancelled' }
end
return put_back()
