-- write_import: write the next page of a committed import
-- ARGV    tenant, idle_ms:int
--         idle_ms: leave the import to its process if that has written a page within this time; 0: do not
-- RETURNS the number of pages that are left; 0 also if there is no import; -1 if another process is at work on it
-- EVENTS  for deliveries that fell due before, with the task of a person that gets fewer messages: outcomes, reported, released, finished
-- INVARIANT all pages or none: a page is written and counted in one step, so each is written once, in order

return function(tenant, idle_ms)
  local lock, pages = Key.import(tenant), Key.importpages(tenant)
  local state, number, count, beat, token = unpack(redis_call('HMGET', lock, 'state', 'next', 'pages', 'beat', 'token'))
  if not state then
    redis_call('ZREM', Key.imports(), tenant)
    return 0
  end
  if state ~= 'writing' or now - tonumber(beat) < idle_ms then return -1 end

  local page = redis_call('HGET', pages, number)
  if page then
    local removed = {}
    WriteBuffer.gather()
    for _, step in ipairs(cmsgpack.unpack(page)) do ImportSteps.write(tenant, step, removed) end
    People.note_removed_contacts(tenant, token .. '.' .. number, removed)
    WriteBuffer.write_gathered()
    redis_call('HDEL', pages, number)
  end
  redis_call('HSET', lock, 'next', number + 1, 'beat', now)
  local left = count - number - 1
  if left <= 0 then
    redis_call('DEL', lock, pages)
    redis_call('ZREM', Key.imports(), tenant)
    redis_call('SET', Key.imported(tenant, token), 1, 'EX', 600)
    return 0
  end
  return left
end
