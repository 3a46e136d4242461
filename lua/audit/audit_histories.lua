-- audit_histories: reads histories and every index that may name them, in one atomic read
-- ARGV    tenant, suffixes:rest
--         tenant: the tenant under which an index names them; "" for the history's own
-- USES    plan
-- RETURNS [now, history, …]; history: [suffix, facts (HISTORY_FACTS), counters (name, value, …), scores in listed, live, retained, due,
--         presence of order key, history, outcomes, reached: 0 absent, 1 without a TTL, 2 with a TTL; the reached bitmap in hex]
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
    redis.call('ZSCORE', retained_key(), owner .. '|' .. suffix), ns and redis.call('ZSCORE', due_key(), order_member(suffix)),
    presence(order_key(suffix)), presence(history_key(suffix)), presence(outcomes_key(suffix)), presence(reached_key(suffix)),
    hex(redis.call('GET', reached_key(suffix)) or ''),
  }
end

local reply = { now }
for _, suffix in ipairs(suffixes) do reply[#reply + 1] = row_of(suffix) end
return reply
