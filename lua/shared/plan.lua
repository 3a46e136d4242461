-- plan: a delivery's channels and parcels, and the ids made from its suffix
-- The plan is a text like "telegram 90 100,57;sms 3;vk 0": channel, recipients with a contact, entries of each parcel. The entries are
-- left out where there is one parcel with one entry for each recipient.

local function channels_of(suffix)
  local found = {}
  for channel in string.gmatch(redis.call('HGET', history_key(suffix), 'plan') or '', '([^ ;]+) %d+') do found[#found + 1] = channel end
  return found
end

local function plan_in(text)
  local plan = {}
  for channel, people, sizes in string.gmatch(text, '([^ ;]+) (%d+) ?([%d,]*)') do
    if sizes == '' and people ~= '0' then sizes = people end
    local parcels = {}
    for size in string.gmatch(sizes, '%d+') do parcels[#parcels + 1] = tonumber(size) end
    plan[#plan + 1] = { channel = channel, people = people, parcels = parcels }
  end
  return plan
end

local function plan_of(suffix) return plan_in(redis.call('HGET', history_key(suffix), 'plan') or '') end

local function save_plan(suffix, plan)
  local parts = {}
  for _, channel_plan in ipairs(plan) do
    parts[#parts + 1] = channel_plan.channel .. ' ' .. channel_plan.people .. ' ' .. table.concat(channel_plan.parcels, ',')
  end
  redis.call('HSET', history_key(suffix), 'plan', table.concat(parts, ';'))
end

-- `42:1763712000000000000` → sender, ns. In ids the time comes first, so that they sort by it.
local function split_suffix(suffix) return string.match(suffix, '^(.*):(%d+)$') end

local function parcel_id(suffix, channel, n)
  local sender, ns = split_suffix(suffix)
  return ns .. '.' .. sender .. '.' .. channel .. '.' .. n
end

local function order_member(suffix)
  local sender, ns = split_suffix(suffix)
  return 'order:' .. ns .. ':' .. sender
end
