-- record_report: record a provider's delivery report: delivered, read, failed. In any order, any number of times
-- ARGV    suffix, channel, parcel:int, item:json
-- RETURNS 1 if the history changed, 0 if its outcome has a higher rank, -1 if there is no such history
-- EVENTS  outcomes, reported, finished

return function(suffix, channel, parcel, item)
  if redis_call('EXISTS', Key.history(suffix)) == 0 then return -1 end
  return Parcels.record_known(suffix, channel, Parcels.latest_parcel(suffix, channel, parcel, item), { item }) and 1 or 0
end
