-- view_lanes: read how long some lanes of a tube are
-- ARGV    tube, position, count:int
--         position: "0", or what the page before has returned
-- RETURNS [position of the next page, "0" at the end; number of lanes that were read; lane, first task, number of tasks behind it, …],
--         without the lanes in which no task waits behind the first
-- EVENTS  none

return function(tube, position, count)
  local page = redis_call('HSCAN', Key.head(tube), position, 'COUNT', count)
  local reply = { page[1], #page[2] / 2 }
  for n = 1, #page[2], 2 do
    local behind = redis_call('ZCARD', Key.lane(tube, page[2][n]))
    if behind > 0 then
      WriteBuffer.add_words(reply, page[2][n], page[2][n + 1])
      reply[#reply + 1] = behind
    end
  end
  return reply
end
