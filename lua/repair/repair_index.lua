-- repair_index: take out of an index what names no live task
-- ARGV    index, kept:int, ids:rest
--         kept: 1 if the index names ended tasks that are kept
-- USES    write_buffer, ready, repair
-- RETURNS what was done, a line each; none if it was in order
-- EVENTS  none
-- INVARIANT I6

for _, id in ipairs(ids) do
  local is_there = read_task(id) ~= nil
  if kept == 1 then is_there = redis.call('HEXISTS', task_key(id), 'ended') == 1 end
  if not is_there then stay_out(index, 'the index', id) end
end
return did
