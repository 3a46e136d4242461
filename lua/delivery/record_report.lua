-- record_report: record a provider's delivery report: delivered, read, failed. In any order, any number of times
-- ARGV    suffix, channel, parcel:int, item:json
-- RETURNS 1 if the history changed, 0 if its outcome has a higher rank, -1 if there is no such history
-- EVENTS  outcomes, reported, finished

return function(suffix, channel, parcel, item)
  if redis_call('EXISTS', Key.history(suffix)) == 0 then return -1 end
  local before = redis_call('HMGET', Key.history(suffix), 'version', 'strategy')
  local closed = Outcome.record(suffix, channel, { item })
  -- A report may come before the courier's own outcome: it closes the entry, and its parcel has one entry less to do. If the parcel has
  -- ended (cancelled, expired), its entries have ended with it.
  if closed ~= 0 then
    local id = Plan.parcel_id(suffix, channel, Parcels.latest_parcel(suffix, Plan.plan_of(suffix), channel, parcel, item))
    if redis_call('EXISTS', Key.task(id)) == 1 then
      redis_call('HINCRBY', Key.progress(id), 'left', 0 - closed)
      DeliveryEnd.close_entries(suffix, channel, closed)
    end
  end
  if redis_call('HGET', Key.history(suffix), 'version') == before[1] then return 0 end
  if before[2] then Parcels.wake_later(suffix, channel, Parcels.latest_parcel(suffix, Plan.plan_of(suffix), channel, parcel, item)) end
  return 1
end
