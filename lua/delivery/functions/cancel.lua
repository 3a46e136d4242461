-- cancel: cancel a delivery, whole or for chosen recipients, as far as it has not been sent
-- ARGV    suffix, tenant, whole:int, entries:json
--         entries: [[channel, parcel, item], …] of the chosen recipients; item as in outcome.lua, with status cancelled, or skipped of
--         somebody who has opted out
-- RETURNS ["cancelled", parcels (or recipients) with an attempt under way, which end with the next extend or settle, …] or ["missing"]
--         ["over"] or ["more"]: entries that may have been sent were ended as unknown; call again
-- EVENTS  del of the order key; outcomes, reported, cancelled, finished
-- INVARIANT I11 cancelled before the claim: never claimed; while taken: not retried. A final outcome is kept (D-42); an entry that may
--         have been sent is unknown (D-38)

return function(suffix, tenant, whole, entries)
  local facts = Parcels.facts_of(suffix)
  if facts.tenant ~= tenant then return { 'missing' } end
  if facts.state ~= 'scheduled' and facts.state ~= 'released' then return { 'over' } end
  if whole == 0 then return { 'cancelled', unpack(Cancelling.cancel_entries(suffix, facts.state, entries)) } end
  if facts.state == 'released' and Cancelling.closed_a_page(suffix) then return { 'more' } end
  return { 'cancelled', unpack(Cancelling.cancel_whole(suffix, facts.state)) }
end
