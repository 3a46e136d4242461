-- migrate_job_logs: stores logs of jobs, each of them a stream at first, as lists of numbered lines
-- ARGV    ids:rest
-- RETURNS how many were streams; what is no stream is left as it is
-- EVENTS  none

local MOST_LINES = 1000

-- The first line is the oldest one.
local function lines_of(key)
  local entries, lines = redis_call('XREVRANGE', key, '+', '-', 'COUNT', MOST_LINES), {}
  for n = #entries, 1, -1 do
    local ms, text = string.match(entries[n][1], '^%d+'), string.gsub(entries[n][2][2], '\n', ' ')
    lines[#lines + 1] = #lines + 1 .. ' ' .. ms .. ' ' .. text
  end
  return lines
end

return function(ids)
  local stored = 0
  for _, id in ipairs(ids) do
    local key = Key.job_log(id)
    if redis_call('TYPE', key).ok == 'stream' then
      local lines = lines_of(key)
      redis_call('DEL', key)
      if lines[1] then redis_call('RPUSH', key, unpack(lines)) end
      stored = stored + 1
    end
  end
  return stored
end
