-- record_report: record a provider's delivery report: delivered, read, failed. In any order, any number of times
-- ARGV    suffix, channel, parcel:int, item:json
-- USES    plan, outcome, delivery_end, parcels
-- LATE    latest_parcel, wake_later
-- RETURNS 1 if the history changed, 0 if its outcome has a higher rank, -1 if there is no such history
-- EVENTS  outcomes, reported, finished

if redis.call('EXISTS', history_key(suffix)) == 0 then return -1 end
local before = redis.call('HMGET', history_key(suffix), 'version', 'strategy')
local closed = record(suffix, channel, { item })
-- A report may come before the courier's own outcome: it closes the entry, and its parcel has one entry less to do. If the parcel has
-- ended (cancelled, expired), its entries have ended with it.
if closed ~= 0 then
  local id = parcel_id(suffix, channel, latest_parcel(suffix, plan_of(suffix), channel, parcel, item))
  if redis.call('EXISTS', task_key(id)) == 1 then
    redis.call('HINCRBY', task_key(id), 'left', 0 - closed)
    close_entries(suffix, channel, closed)
  end
end
if redis.call('HGET', history_key(suffix), 'version') == before[1] then return 0 end
if before[2] then wake_later(suffix, channel, latest_parcel(suffix, plan_of(suffix), channel, parcel, item)) end
return 1
