-- audit_histories: reads histories, every index that may name them, and the content of small ones, in one atomic read
-- ARGV    tenant, entries:int, suffixes:rest
--         tenant: the tenant under which an index names them; "" for the history's own
--         entries: the most recipients, entries of parcels and outcomes of all contents together; 0 for no content
-- USES    plan, damaged
-- RETURNS [now, history, …]; history: [suffix, facts (HISTORY_FACTS), counters (name, value, …), scores in listed, live, retained, due,
--         presence of order key, history, outcomes, reached: 0 absent, 1 without a TTL, 2 with a TTL; the reached bitmap in hex,
--         content: [outcomes (field, text, …), pages of recipients, parcels] or false if that is too much]
--         parcels: of each channel in turn [text, history and left of its task]
-- EVENTS  none

local function counters_of(suffix)
  local names = {}
  for _, channel in ipairs(channels_of(suffix)) do
    names[#names + 1] = 'left:' .. channel
    for _, status in ipairs(COUNTED) do names[#names + 1] = 'n:' .. channel .. ':' .. status end
  end
  if #names == 0 then return {} end
  local values, found = redis.call('HMGET', history_key(suffix), unpack(names)), {}
  for n, name in ipairs(names) do
    if values[n] then found[#found + 1] = name found[#found + 1] = values[n] end
  end
  return found
end

local function presence(key)
  local ttl = redis.call('PTTL', key)
  return ttl == -2 and 0 or ttl == -1 and 1 or 2
end

local function hex(text) return (string.gsub(text, '.', function(byte) return string.format('%02x', string.byte(byte)) end)) end

local function row_of(suffix)
  local facts = redis.call('HMGET', history_key(suffix), unpack(HISTORY_FACTS))
  local owner = tenant ~= '' and tenant or facts[1] or ''
  local ns = select(2, split_suffix(suffix))
  return {
    suffix, facts, counters_of(suffix), redis.call('ZSCORE', listed_key(owner), suffix), redis.call('ZSCORE', live_key(owner), suffix),
    redis.call('ZSCORE', retained_key(), owner .. '|' .. suffix), ns and redis.call('ZSCORE', due_key(), order_member(suffix)) or false,
    presence(order_key(suffix)), presence(history_key(suffix)), presence(outcomes_key(suffix)), presence(reached_key(suffix)),
    hex(redis.call('GET', reached_key(suffix)) or ''),
  }
end

local function parcels_of(suffix, plan)
  local found = {}
  for _, channel_plan in ipairs(plan) do
    for n = 0, #channel_plan.parcels - 1 do
      local text = redis.call('HGET', history_key(suffix), 'parcel:' .. channel_plan.channel .. ':' .. n)
      local task = peek_hash(task_key(parcel_id(suffix, channel_plan.channel, n)), 'history', 'left')
      found[#found + 1] = { text, task[1], task[2] }
    end
  end
  return found
end

local function pages_of(suffix)
  local found = {}
  while true do
    local text = redis.call('HGET', history_key(suffix), 'people:' .. #found)
    if not text then return found end
    found[#found + 1] = text
  end
end

-- Outcomes of another type are a violation of their own.
local function content_of(suffix)
  local stored = entries > 0 and redis.pcall('HLEN', outcomes_key(suffix))
  if type(stored) ~= 'number' then return false end
  local plan, size = plan_of(suffix), tonumber(redis.call('HGET', history_key(suffix), 'recipients') or 0) + stored
  for _, channel_plan in ipairs(plan) do
    for _, parcel in ipairs(channel_plan.parcels) do size = size + parcel end
  end
  if size > entries then return false end
  entries = entries - size
  return { redis.call('HGETALL', outcomes_key(suffix)), pages_of(suffix), parcels_of(suffix, plan) }
end

local reply = { now }
for _, suffix in ipairs(suffixes) do
  local row = row_of(suffix)
  row[#row + 1] = content_of(suffix)
  reply[#reply + 1] = row
end
return reply
