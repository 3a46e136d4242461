-- received: which messages an address has received, and to which delivery and recipient each belongs
-- The newest stand in one list. Older ones are in a hash for each month in which they left it: the provider's id of the message leads to
-- the rest of its text.

local MONTH_MS = 30 * DAY_MS

-- How long they are kept: a history lives for its retention after its end, which comes within three months of its last message. It is
-- not known here whether its delivery asks, so it is the longer one.
function Received.kept_ms()
  return math.max(DeliveryEnd.retention_ms(false), DeliveryEnd.retention_ms(true)) + 90 * DAY_MS
end

local function page_of(tenant, channel, address, months_ago)
  return Key.received_before(tenant, channel, address, string.format('%.0f', math.floor(now / MONTH_MS) - months_ago))
end

-- Returns the months in which there may be older ones.
function Received.pages(tenant, channel, address)
  local found = {}
  for months_ago = 0, math.ceil(Received.kept_ms() / MONTH_MS) do found[#found + 1] = page_of(tenant, channel, address, months_ago) end
  return found
end

-- Splits a text into the provider's id, '' for none, and the rest.
function Received.split(text) return string.match(text, '^(.*) (%S+ %S+)$') end

-- Moves the oldest of a list to the page of this month, so that the newest stay. Those without an id are found by nobody.
function Received.move_oldest(tenant, channel, address, most)
  local key = Key.received(tenant, channel, address)
  local surplus, page = redis_call('ZCARD', key) - most, page_of(tenant, channel, address, 0)
  if surplus <= 0 then return end
  local oldest = redis_call('ZPOPMIN', key, surplus)
  for n = 1, #oldest, 2 do
    local reference, rest = Received.split(oldest[n])
    if reference ~= '' then redis_call('HSET', page, reference, rest) end
  end
  redis_call('PEXPIRE', page, Received.kept_ms())
end
