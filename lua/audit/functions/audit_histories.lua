-- audit_histories: reads histories, every index that may name them, and the content of small ones, in one atomic read
-- ARGV    tenant, entries:int, suffixes:rest
--         tenant: the tenant under which an index names them; "" for the history's own
--         entries: the most recipients, entries of parcels and outcomes of all contents together; 0 for no content
-- RETURNS [now, history, …]; history: [suffix, facts (HISTORY_FACTS), counters and, with content, answers (name, value, …), scores in
--         listed, live, retained, due, presence of order key, history, outcomes, reached: 0 absent, 1 without a TTL, 2 with a TTL; the
--         reached bitmap in hex,
--         content: [outcomes (field, text, …), pages of recipients, parcels] or false if that is too much]
--         parcels: of each channel in turn [text, history and left of its task]
-- EVENTS  none

local function counters_of(suffix, plan)
  local names = {}
  for _, channel_plan in ipairs(plan) do
    names[#names + 1] = 'left:' .. channel_plan.channel
    for _, status in ipairs(COUNTED) do names[#names + 1] = 'n:' .. channel_plan.channel .. ':' .. status end
  end
  if #names == 0 then return {} end
  local values, found = redis_call('HMGET', Key.history(suffix), unpack(names)), {}
  for n, name in ipairs(names) do
    if values[n] then found[#found + 1] = name found[#found + 1] = values[n] end
  end
  return found
end

local function presence(key)
  local ttl = redis_call('PTTL', key)
  return ttl == -2 and 0 or ttl == -1 and 1 or 2
end

local function hex(text) return (string.gsub(text, '.', function(byte) return string.format('%02x', string.byte(byte)) end)) end

-- Returns the fields by name, and the counters and answers among them. One call for all fields costs less than one for those that are
-- needed.
local function fields_of(suffix)
  local flat, fields, counters = redis_call('HGETALL', Key.history(suffix)), {}, {}
  for n = 1, #flat, 2 do
    local name = flat[n]
    fields[name] = flat[n + 1]
    if string.find(name, '^n:') or string.find(name, '^left:') or string.find(name, '^answer') then
      counters[#counters + 1] = name
      counters[#counters + 1] = flat[n + 1]
    end
  end
  return fields, counters
end

local function parcels_in(fields, suffix, plan)
  local found = {}
  for _, channel_plan in ipairs(plan) do
    for n = 0, #channel_plan.parcels - 1 do
      local text = fields['parcel:' .. channel_plan.channel .. ':' .. n] or false
      local id = Plan.parcel_id(suffix, channel_plan.channel, n)
      local task = Record.peek(id)
      found[#found + 1] = { text, task and task.history or false, task and redis_call('HGET', Key.progress(id), 'left') or false }
    end
  end
  return found
end

local function pages_in(fields)
  local found = {}
  while fields['people:' .. #found] do found[#found + 1] = fields['people:' .. #found] end
  return found
end

local function position_of(name)
  for n, fact in ipairs(HISTORY_FACTS) do
    if fact == name then return n end
  end
end

local function row_of(suffix, facts, owner)
  local ns = select(2, Plan.split_suffix(suffix))
  local reached = presence(Key.reached(suffix))
  return {
    suffix, facts, {}, redis_call('ZSCORE', Key.listed(owner), suffix), redis_call('ZSCORE', Key.live(owner), suffix),
    redis_call('ZSCORE', Key.retained(), owner .. '|' .. suffix),
    ns and redis_call('ZSCORE', Key.due(), Plan.order_member(suffix)) or false,
    presence(Key.order(suffix)), presence(Key.history(suffix)), presence(Key.outcomes(suffix)), reached,
    reached > 0 and hex(redis_call('GET', Key.reached(suffix)) or '') or '',
  }
end

-- Returns how many entries the content of a history has; nil with outcomes of another type, which are a violation of their own.
local function size_of(suffix, plan, recipients)
  local size = redis_pcall('HLEN', Key.outcomes(suffix))
  if type(size) ~= 'number' then return nil end
  for _, channel_plan in ipairs(plan) do
    for _, parcel in ipairs(channel_plan.parcels) do size = size + parcel end
  end
  return size + recipients
end

return function(tenant, entries, suffixes)
  local PLAN, RECIPIENTS = position_of('plan'), position_of('recipients')
  local reply = { now }
  for _, suffix in ipairs(suffixes) do
    local facts = redis_call('HMGET', Key.history(suffix), unpack(HISTORY_FACTS))
    local row = row_of(suffix, facts, tenant ~= '' and tenant or facts[1] or '')
    local plan = Plan.plan_in(facts[PLAN] or '')
    local size = entries > 0 and size_of(suffix, plan, tonumber(facts[RECIPIENTS] or 0))
    if size and size <= entries then
      entries = entries - size
      local fields, counters = fields_of(suffix)
      local outcomes = redis_call('HGETALL', Key.outcomes(suffix))
      row[3], row[#row + 1] = counters, { outcomes, pages_in(fields), parcels_in(fields, suffix, plan) }
    else
      row[3], row[#row + 1] = counters_of(suffix, plan), false
    end
    reply[#reply + 1] = row
  end
  return reply
end
