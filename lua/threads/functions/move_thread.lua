-- move_thread: give the thread of a person to another one, of which it has become a part
-- ARGV    id, person
--         person: JSON, as the thread keeps it
-- RETURNS 1, or 0 if there is no such thread
-- EVENTS  none

return function(id, person)
  if redis_call('EXISTS', Key.thread(id)) == 0 then return 0 end
  redis_call('HSET', Key.thread(id), 'person', person)
  return 1
end
