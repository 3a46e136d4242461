-- job_log: the live log of a job: a stream of the last lines

local function append_log(id, line)
  redis.call('XADD', job_log_key(id), 'MAXLEN', '~', 1000, '*', 'line', line)
end
