-- cancel: cancel a delivery, whole or for chosen recipients, as far as it has not been sent
-- ARGV    suffix, tenant, whole:int, entries:json
--         entries: [[channel, parcel, item], …] of the chosen recipients; item as in outcome.lua, with status cancelled
-- RETURNS ["cancelled", parcels (or recipients) with an attempt under way, which end with the next extend or settle, …] or ["missing"]
--         ["over"] or ["more"]: entries that may have been sent were ended as unknown; call again
-- EVENTS  del of the order key; outcomes, reported, cancelled, finished
-- INVARIANT I11 cancelled before the claim: never claimed; while taken: not retried. A final outcome is kept (D-42); an entry that may
--         have been sent is unknown (D-38)

return function(suffix, tenant, whole, entries)
  local history = Key.history(suffix)
  local fields = Parcels.facts_of(suffix)
  if fields.tenant ~= tenant then return { 'missing' } end
  if fields.state ~= 'scheduled' and fields.state ~= 'released' then return { 'over' } end
  local plan = Plan.plan_of(suffix)
  local under_way = {}

  local function cancel_parcel(channel, n)
    local id = Plan.parcel_id(suffix, channel, n)
    local task = Record.read(id)
    if not task then return end
    if task.state == 'taken' then
      redis_call('HSET', Key.progress(id), 'cancel', 1)
      under_way[#under_way + 1] = id
    else
      Parcels.close_parcel(id, task, 'cancelled')
    end
  end

  -- Returns the parcels whose worker was lost, each with its task, and the number of their open entries.
  local function lost_parcels()
    local found, left = {}, 0
    for _, channel_plan in ipairs(plan) do
      for n = 1, #channel_plan.parcels do
        local id = Plan.parcel_id(suffix, channel_plan.channel, n - 1)
        local task = Record.read(id)
        if task and task.state ~= 'taken' and redis_call('HEXISTS', Key.progress(id), 'lost') == 1 then
          found[#found + 1] = { id, task }
          left = left + task.left
        end
      end
    end
    return found, left
  end

  -- Ends entries of lost workers before the delivery is cancelled, if they are too many for one call. Returns whether it did.
  local function closed_a_page()
    local lost, left = lost_parcels()
    if left <= Parcels.closable or #lost == 1 then return false end
    for n = 1, #lost - 1 do
      if Parcels.may_close() then Parcels.close_unclear(lost[n][1], lost[n][2]) end
    end
    return true
  end

  local function cancel_whole()
    DeliveryEnd.withdraw(suffix)
    if fields.state == 'scheduled' then return DeliveryEnd.finish_history(suffix) end
    for _, channel_plan in ipairs(plan) do
      for n = 1, #channel_plan.parcels do cancel_parcel(channel_plan.channel, n - 1) end
    end
  end

  -- An entry of a taken parcel may be in flight: the courier sees the cancellation at its next extend and reports the outcome. A final
  -- outcome is kept.
  local function skip_in_flight(id, channel, item)
    if not OPEN[Outcome.status_in(redis_call('HGET', Key.outcomes(suffix), Outcome.field_of(item[1], channel, item[4])))] then return end
    local stored = redis_call('HMGET', Key.progress(id), 'skip', 'skipped')
    redis_call('HSET', Key.progress(id), 'skip', (stored[1] and stored[1] .. '\n' or '') .. item[1],
      'skipped', (stored[2] and stored[2] .. '\n' or '') .. cjson.encode(item))
    under_way[#under_way + 1] = item[1]
  end

  local function cancel_entry(channel, parcel, item)
    local id = Plan.parcel_id(suffix, channel, parcel)
    local task = Record.read(id)
    if fields.state == 'released' and (not task or Parcels.latest_parcel(suffix, channel, parcel, item) ~= parcel) then return end
    if task and task.state == 'taken' then return skip_in_flight(id, channel, item) end
    local closed = Outcome.record(suffix, channel, { task and Unclear.cancelled_item(id, task, item) or item })
    if closed == 0 then return end
    if task then
      task.left = redis_call('HINCRBY', Key.progress(id), 'left', 0 - closed)
      if task.left == 0 then Task.finish(id, task, 'cancelled') end
    end
    for _, channel_plan in ipairs(plan) do
      if channel_plan.channel == channel then channel_plan.parcels[parcel + 1] = channel_plan.parcels[parcel + 1] - closed end
    end
    DeliveryEnd.close_entries(suffix, channel, closed)
  end

  if whole == 1 then
    if fields.state == 'released' and closed_a_page() then return { 'more' } end
    cancel_whole()
  else
    if fields.state == 'scheduled' then Parcels.open_channels(suffix, plan) end
    redis_call('HSET', history, 'closed', 1, 'withdrawn', 1)
    for _, entry in ipairs(entries) do cancel_entry(entry[1], entry[2], entry[3]) end
    Plan.save_plan(suffix, plan)
  end
  return { 'cancelled', unpack(under_way) }
end
