-- exchanges: keeps what the provider said about each attempt that failed, for seven days (D-48)
-- A field of the hash has the name of its outcome. Its lines, the oldest first, are `n \t at ms \t kind|reason|detail \t calls`: the last
-- of `n` attempts in a row that ended in the same way, and its calls as JSON (core/deliveries/delivery_reports.py).

local MOST_LINES = 5
local WEEK_MS = 7 * DAY_MS

-- Returns the lines with a further one, `at \t end \t calls`. What is written again with the end of a claim is there already.
local function with_line(lines, line)
  if not lines then return '1\t' .. line end
  local before, last = string.match(lines, '^(.*\n)([^\n]*)$')
  before, last = before or '', last or lines
  local count, at, ending = string.match(last, '^(%d+)\t(%d+)\t([^\t]*)\t')
  local new_at, new_ending = string.match(line, '^(%d+)\t([^\t]*)\t')
  if tonumber(new_at) <= tonumber(at) then return lines end
  if new_ending == ending then return before .. string.format('%.0f', tonumber(count) + 1) .. '\t' .. line end
  local _, breaks = string.gsub(lines, '\n', '')
  if breaks + 1 >= MOST_LINES then lines = string.match(lines, '^[^\n]*\n(.*)$') end
  return lines .. '\n1\t' .. line
end

-- `added`: pairs of a field and its line.
function Exchanges.keep(suffix, added)
  if #added == 0 then return end
  local key, known = Key.exchanges(suffix), {}
  for n = 1, #added, 2 do
    local field = added[n]
    known[field] = with_line(known[field] or redis_call('HGET', key, field), added[n + 1])
  end
  local words = {}
  for field, lines in pairs(known) do WriteBuffer.add_words(words, field, lines) end
  for from = 1, #words, 1000 do redis_call('HSET', key, unpack(words, from, math.min(from + 999, #words))) end
  redis_call('PEXPIRE', key, WEEK_MS)
end
