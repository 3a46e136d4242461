-- record_late: record what a courier knows of its attempts on a parcel whose lease it has lost
-- ARGV    suffix, channel, parcel:int, items:json
-- RETURNS 1 if the history changed, else 0
-- EVENTS  outcomes, reported, finished
-- INVARIANT I22 what is known of an attempt is recorded; I18 what another worker may have sent does not end as failed

-- Returns whether nothing but this attempt decides what became of an entry. What was sent was sent. An attempt that did not send it decides
-- only in a channel that announces attempts: there no other worker attempts an entry that it finds as sending, and ends it as unknown.
local function is_decisive(item, stored, announces)
  if REACHED[item[6]] then return true end
  local status = Outcome.status_in(stored)
  return announces and not OPEN[item[6]] and (status == 'sending' or status == 'unknown')
end

return function(suffix, channel, parcel, items)
  if redis_call('EXISTS', Key.history(suffix)) == 0 then return 0 end
  local own, known, announces = Parcels.own_items(suffix, channel, parcel, items), {}, Task.option(channel, 'announces')
  local stored = Outcome.stored_outcomes(suffix, channel, Outcome.read_items(own))
  for n, item in ipairs(own) do
    if is_decisive(item, stored[n], announces) then
      item[9] = math.max(item[9], Outcome.attempts_in(stored[n]))
      known[#known + 1] = item
    end
  end
  return Parcels.record_known(suffix, channel, parcel, known) and 1 or 0
end
