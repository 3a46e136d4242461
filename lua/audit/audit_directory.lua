-- audit_directory: reads fields of hashes and scores of sorted sets, in one atomic read
-- ARGV    reads:rest
--         reads: for each the command (HGET or ZSCORE), the key and the field or member
-- RETURNS for each the value; false if there is none
-- EVENTS  none

return function(reads)
  local reply = {}
  for n = 1, #reads, 3 do reply[#reply + 1] = redis_call(reads[n], reads[n + 1], reads[n + 2]) end
  return reply
end
