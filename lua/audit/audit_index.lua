-- audit_index: reads members of one index and the tasks they name, in one atomic read
-- ARGV    index, ids:rest
--         index: the key of a sorted set of task ids
-- RETURNS for each [id, its score in the index, state, tube, tenant, lane, order]
-- EVENTS  none

return function(index, ids)
  local reply = {}
  for _, id in ipairs(ids) do
    local facts = Damaged.peek_hash(Key.task(id), 'state', 'tube', 'tenant', 'lane', 'order')
    reply[#reply + 1] = { id, redis_call('ZSCORE', index, id), unpack(facts) }
  end
  return reply
end
