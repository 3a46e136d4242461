-- plan: a delivery's channels and parcels, and the ids made from its suffix
-- The plan is a text like "telegram 90 100,57;sms 3;vk 0": channel, recipients with a contact, entries of each parcel. The entries are
-- left out where there is one parcel with one entry for each recipient.

function Plan.channels_of(suffix)
  local found = {}
  for channel in string.gmatch(redis_call('HGET', Key.history(suffix), 'plan') or '', '([^ ;]+) %d+') do found[#found + 1] = channel end
  return found
end

function Plan.plan_in(text)
  local plan = {}
  for channel, people, sizes in string.gmatch(text, '([^ ;]+) (%d+) ?([%d,]*)') do
    if sizes == '' and people ~= '0' then sizes = people end
    local parcels = {}
    for size in string.gmatch(sizes, '%d+') do parcels[#parcels + 1] = tonumber(size) end
    plan[#plan + 1] = { channel = channel, people = people, parcels = parcels }
  end
  return plan
end

function Plan.plan_of(suffix) return Plan.plan_in(redis_call('HGET', Key.history(suffix), 'plan') or '') end

function Plan.save_plan(suffix, plan)
  local parts = {}
  for _, channel_plan in ipairs(plan) do
    parts[#parts + 1] = channel_plan.channel .. ' ' .. channel_plan.people .. ' ' .. table.concat(channel_plan.parcels, ',')
  end
  redis_call('HSET', Key.history(suffix), 'plan', table.concat(parts, ';'))
end

-- `42:1763712000000000000` → sender, ns. In ids the time comes first, so that they sort by it.
function Plan.split_suffix(suffix) return string.match(suffix, '^(.*):(%d+)$') end

function Plan.parcel_id(suffix, channel, n)
  local sender, ns = Plan.split_suffix(suffix)
  return ns .. '.' .. sender .. '.' .. channel .. '.' .. n
end

-- In the ids of its parcels and in the names of its outcomes a wave of reminders has a label, `<channel>~<wave>`, in place of the channel:
-- so it changes nothing of what became of the first sending.
function Plan.label_in(id) return string.match(id, '%.([^.]+)%.%d+$') end

function Plan.channel_of(label) return string.match(label, '^[^~]+') end

function Plan.is_reminder(label) return string.find(label, '~', 1, true) ~= nil end

function Plan.order_member(suffix)
  local sender, ns = Plan.split_suffix(suffix)
  return 'order:' .. ns .. ':' .. sender
end
