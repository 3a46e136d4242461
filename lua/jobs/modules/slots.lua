-- slots: the slots of limits, all in one shard, so that one step decides on all limits of a job (docs/decisions/0146)
-- `limits` of a job: [[name, how many slots], …]. A slot ends by itself if its holder dies. A job waits in the queue of one limit: the
-- first of its own that has no free slot.

local KEPT_MS = 3600000
local PAGE = 100

-- So often a job is woken that does not take the slots it got: its task may have been cancelled.
local MOST_WAKES = 10

local function has_slot(job, name)
  local ends = redis_call('ZSCORE', Key.job_slots(name), job)
  return ends and tonumber(ends) > now
end

-- Returns the name of the first limit that has no free slot for the job, or nil.
local function first_full(job, limits)
  for _, limit in ipairs(limits) do
    local used = redis_call('ZCOUNT', Key.job_slots(limit[1]), '(' .. now, '+inf')
    if used >= limit[2] and not has_slot(job, limit[1]) then return limit[1] end
  end
end

-- Slots that have ended are removed here, so that a holder whose slot another has taken cannot extend it.
local function occupy(job, limits, lease_ms)
  for _, limit in ipairs(limits) do
    local key = Key.job_slots(limit[1])
    redis_call('ZREMRANGEBYSCORE', key, '-inf', now)
    redis_call('ZADD', key, now + lease_ms, job)
    redis_call('PEXPIRE', key, lease_ms + KEPT_MS)
    redis_call('ZREM', Key.job_queue(limit[1]), job)
  end
end

local function join_queue(job, name, since)
  redis_call('ZADD', Key.job_queue(name), since, job)
  redis_call('PEXPIRE', Key.job_queue(name), KEPT_MS)
  redis_call('SADD', Key.job_queues(), name)
  redis_call('PEXPIRE', Key.job_queues(), KEPT_MS)
end

-- Gives the first job of a queue its slots, or moves it to the queue of another limit. Returns whether the next one may be looked at.
local function serve_first(name, lease_ms, woken)
  local job = redis_call('ZRANGE', Key.job_queue(name), 0, 0)[1]
  if not job then return false end
  local facts = redis_call('HMGET', Key.job_slot(job), 'limits', 'by', 'since')
  local limits = facts[1] and cjson.decode(facts[1]) or {}
  local full = first_full(job, limits)
  if full == name then return false end
  redis_call('ZREM', Key.job_queue(name), job)
  if full then
    join_queue(job, full, facts[3])
  elseif facts[1] then
    occupy(job, limits, lease_ms)
    woken[#woken + 1] = { facts[2], job }
  end
  return true
end

-- Puts back into the queue the jobs that got slots and did not take them in time: the process that was to wake them has died.
local function put_back(name)
  for _, job in ipairs(redis_call('ZRANGEBYSCORE', Key.job_slots(name), '-inf', now, 'LIMIT', 0, PAGE)) do
    local facts = redis_call('HMGET', Key.job_slot(job), 'by', 'since')
    local is_waiting = facts[1] and not string.find(facts[1], ' ', 1, true)
    if is_waiting and redis_call('HINCRBY', Key.job_slot(job), 'wakes', 1) <= MOST_WAKES then
      redis_call('ZREM', Key.job_slots(name), job)
      join_queue(job, name, facts[2])
    end
  end
end

-- Gives the free slots of a limit to the jobs that wait for them, in their order, and adds the task and the name of each to `woken`.
local function serve(name, lease_ms, woken)
  put_back(name)
  for _ = 1, PAGE do
    if not serve_first(name, lease_ms, woken) then break end
  end
  if redis_call('EXISTS', Key.job_queue(name), Key.job_slots(name)) == 0 then redis_call('SREM', Key.job_queues(), name) end
end

function Slots.serve_some(lease_ms, woken)
  for _, name in ipairs(redis_call('SRANDMEMBER', Key.job_queues(), PAGE)) do serve(name, lease_ms, woken) end
end

-- Removes a job from all its limits; those that wait get its slots.
function Slots.leave(job, lease_ms, woken)
  local stored = redis_call('HGET', Key.job_slot(job), 'limits')
  local limits = stored and cjson.decode(stored) or {}
  redis_call('DEL', Key.job_slot(job))
  for _, limit in ipairs(limits) do
    redis_call('ZREM', Key.job_slots(limit[1]), job)
    redis_call('ZREM', Key.job_queue(limit[1]), job)
  end
  for _, limit in ipairs(limits) do serve(limit[1], lease_ms, woken) end
end

local function remember(job, limits, by, since)
  redis_call('HSET', Key.job_slot(job), 'limits', cjson.encode(limits), 'by', by, 'since', since, 'wakes', 0)
  redis_call('PEXPIRE', Key.job_slot(job), KEPT_MS)
end

-- Returns the limit for which the job has to wait, or nil: then it has all its slots.
function Slots.take(job, limits, holder, task, lease_ms, woken)
  if redis_call('HGET', Key.job_slot(job), 'limits') ~= cjson.encode(limits) then Slots.leave(job, lease_ms, woken) end
  for _, limit in ipairs(limits) do serve(limit[1], lease_ms, woken) end
  local full = first_full(job, limits)
  if not full then
    remember(job, limits, holder, now)
    occupy(job, limits, lease_ms)
    return nil
  end
  local since = redis_call('HGET', Key.job_slot(job), 'since') or now
  Slots.leave(job, lease_ms, woken)
  remember(job, limits, task, since)
  join_queue(job, full, since)
  return full
end

-- Returns whether the attempt still has all slots of its job; then they are extended.
function Slots.extend(job, holder, lease_ms)
  local facts = redis_call('HMGET', Key.job_slot(job), 'limits', 'by')
  if facts[2] ~= holder then return false end
  local limits = cjson.decode(facts[1])
  for _, limit in ipairs(limits) do
    if not redis_call('ZSCORE', Key.job_slots(limit[1]), job) then return false end
  end
  occupy(job, limits, lease_ms)
  redis_call('PEXPIRE', Key.job_slot(job), KEPT_MS)
  return true
end
