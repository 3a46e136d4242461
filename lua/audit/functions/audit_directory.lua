-- audit_directory: reads fields of hashes, scores of sorted sets, facts of tasks and times to live, in one atomic read
-- ARGV    reads:rest
--         reads: for each HGET or ZSCORE, the key and the field or member; or TASK, its key and the fact; or PTTL, the key and ""
-- RETURNS for each the value; false if there is none
-- EVENTS  none

local function fact_of(key, name)
  local task = Record.peek(string.sub(key, #Key.task('') + 1))
  return task and Record.text_of(task[name]) or false
end

return function(reads)
  local reply = {}
  for n = 1, #reads, 3 do
    local command, key, field = reads[n], reads[n + 1], reads[n + 2]
    if command == 'TASK' then
      reply[#reply + 1] = fact_of(key, field)
    elseif command == 'PTTL' then
      reply[#reply + 1] = tostring(redis_call('PTTL', key))
    else
      reply[#reply + 1] = redis_call(command, key, field)
    end
  end
  return reply
end
