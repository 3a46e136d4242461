-- job_log: the live log of a job: a list of its last lines, each `number ms text`

local MOST_LINES = 1000

-- Returns the number of the last line.
local function last_number(key)
  local last = redis_call('LINDEX', key, -1)
  return last and tonumber(string.match(last, '^%d+')) or 0
end

-- Deleting the bell wakes those that follow the log.
function JobLog.append_log(id, line)
  local key = Key.job_log(id)
  local number = last_number(key) + 1
  redis_call('RPUSH', key, string.format('%d %.0f ', number, now) .. line)
  if number > MOST_LINES then redis_call('LTRIM', key, -MOST_LINES, -1) end
  redis_call('DEL', Key.job_bell(id))
end
