-- audit_index: reads members of one index and the tasks they name, in one atomic read
-- ARGV    index, ids:rest
--         index: the key of a sorted set of task ids
-- RETURNS for each [id, its score in the index, state, tube, tenant, lane, order]
-- EVENTS  none

return function(index, ids)
  local reply = {}
  for _, id in ipairs(ids) do
    local task = Record.peek(id) or {}
    reply[#reply + 1] = {
      id, redis_call('ZSCORE', index, id), task.state or false, task.tube or false, task.tenant or false, task.lane or false,
      Record.text_of(task.order),
    }
  end
  return reply
end
