-- costs: counts what was sent, by month, channel, price and sender, so that it can be paid (W-27)
-- Fields of the hash of a month: `messages<1F>channel<1F><1F>sender`, and for what is paid in parts `parts<1F>channel<1F>price<1F>sender`.
-- A message counts once, when it was sent or may have been. Its parts stand in its outcome (outcome.lua), which says that they are counted.

local KEPT_MS = 3 * 366 * DAY_MS

-- Returns `yyyy-mm` of now, UTC. Counts from the first of March of the year 0, so that the leap day ends a year.
local function month()
  local day = math.floor(now / DAY_MS) + 719468
  local era = math.floor(day / 146097)
  local of_era = day - era * 146097
  local days = { math.floor(of_era / 1460), math.floor(of_era / 36524), math.floor(of_era / 146096) }
  local year = math.floor((of_era - days[1] + days[2] - days[3]) / 365)
  local of_year = of_era - (365 * year + math.floor(year / 4) - math.floor(year / 100))
  local since_march = math.floor((5 * of_year + 2) / 153)
  local is_next_year = since_march >= 10
  return string.format('%04d-%02d', era * 400 + year + (is_next_year and 1 or 0), is_next_year and since_march - 9 or since_march + 3)
end

-- `sent`: messages; `parts`: price → parts.
function Costs.count(suffix, tenant, channel, sent, parts)
  if sent == 0 and not next(parts) then return end
  local key, sender = Key.costs(tenant, month()), string.match(suffix, '^(.*):')
  if sent > 0 then redis_call('HINCRBY', key, table.concat({ 'messages', channel, '', sender }, '\31'), sent) end
  for price, n in pairs(parts) do redis_call('HINCRBY', key, table.concat({ 'parts', channel, price, sender }, '\31'), n) end
  redis_call('PEXPIRE', key, KEPT_MS)
end
