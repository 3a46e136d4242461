-- reserve_numbers: give the options of a question the lowest numbers that are free at an address
-- ARGV    tenant, channel, address, place, count:int, parcel:int, contact:int, ends:int, over:json
--         place: of the recipient in the delivery that asks; count: 0 for a question that a text answers without a number; parcel,
--         contact: the message; ends: ms, when its numbers are free again; over: the places of questions that are over
-- RETURNS the numbers in the order of the options, none if there are not enough; a repeat returns the same
-- EVENTS  none
-- INVARIANT a number of an address means one option of one question; choices of its last message have other numbers

local MOST = 99

local function lowest(taken, count)
  local free = {}
  for number = 1, MOST do
    if not taken[number] and #free < count then free[#free + 1] = number end
  end
  return #free == count and free or {}
end

return function(tenant, channel, address, place, count, parcel, contact, ends, over)
  local key, taken, last = Key.answer_numbers(tenant, channel, address), {}, ends
  if over[1] then redis_call('HDEL', key, unpack(over)) end
  for number = 1, #cjson.decode(redis_call('GET', Key.choices(tenant, channel, address)) or '[]') do taken[number] = true end
  local known, stored = nil, redis_call('HGETALL', key)
  for n = 1, #stored, 2 do
    local row = cjson.decode(stored[n + 1])
    if stored[n] == place then
      known = row.numbers or {}
    elseif row.ends <= now then
      redis_call('HDEL', key, stored[n])
    else
      last = math.max(last, row.ends)
      for _, number in ipairs(row.numbers or {}) do taken[number] = true end
    end
  end
  local numbers = known or lowest(taken, count)
  if not numbers[1] and count > 0 then return {} end
  redis_call('HSET', key, place, cjson.encode({ numbers = numbers[1] and numbers, parcel = parcel, contact = contact, ends = ends }))
  redis_call('PEXPIRE', key, last - now)
  return numbers
end
