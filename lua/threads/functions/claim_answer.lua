-- claim_answer: note that a reader is answering the person of a thread, and ask whether a colleague is, or has, in one step
-- ARGV    id, tenant, inbox, who, for_ms:int, sends:int
--         who: the id of the reader, as text; for_ms: how long it is noted, 0 ends it; sends: 1 for an answer that is to be sent now
-- RETURNS ["free"] and it is noted; ["answering", who] for a colleague whose time is not over; ["answered", who] for one who has written
--         last, if the answer is to be sent now; ["missing"]: there is no such thread
-- EVENTS  none
-- INVARIANT of two readers who send an answer to one message at once, one is told of the other

local function author_of_answer(thread, number)
  local side, body = string.match(redis_call('HGET', thread, 'message:' .. number) or '', '^%d+ (%S+) %S+ (.*)$')
  local by = side == 'staff' and cjson.decode(body).by
  return by and (type(by) == 'number' and string.format('%.0f', by) or by)
end

return function(id, tenant, inbox, who, for_ms, sends)
  local thread = Key.thread(id)
  local messages, noted = unpack(redis_call('HMGET', thread, 'messages', 'answering'))
  if not messages then return { 'missing' } end
  local ends, other = string.match(noted or '', '^(%d+) (.*)$')
  local is_live = ends ~= nil and tonumber(ends) > now
  if is_live and other ~= who then return { 'answering', other } end
  if for_ms == 0 then
    redis_call('HDEL', thread, 'answering')
  else
    local author = sends == 1 and author_of_answer(thread, messages)
    if author and author ~= who then return { 'answered', author } end
    redis_call('HSET', thread, 'answering', string.format('%.0f %s', now + for_ms, who))
  end
  if is_live == (for_ms == 0) then ThreadEvents.announce(id, tenant, inbox, messages, 'answering') end
  return { 'free' }
end
