-- job_steps: what an iteration has stored: a hash, and beside it the names in the order in which they were stored first

-- Notes the place of a name, the ms of now; one that has a place keeps it, and no two have the same.
function JobSteps.note(id, name)
  local last = redis_call('ZRANGE', Key.job_order(id), -1, -1, 'WITHSCORES')[2]
  redis_call('ZADD', Key.job_order(id), 'NX', math.max(now, (tonumber(last) or 0) + 1), name)
end

function JobSteps.write(id, name, value)
  redis_call('HSET', Key.job_steps(id), name, value)
  JobSteps.note(id, name)
end

-- Stores the state of a job's own, under `place` also for a repetition of the iteration, unless the job was let go.
function JobSteps.write_own(id, place, own, is_late)
  redis_call('HSET', Key.job(id), 'own', own)
  if not is_late then JobSteps.write(id, place, own) end
end

function JobSteps.drop(id)
  redis_call('DEL', Key.job_steps(id), Key.job_order(id))
end

-- A job that has ended can be looked at, and reset, for the retention of histories.
function JobSteps.keep(id)
  local retention = redis_call('HGET', Key.settings(), 'retention_ms') or string.format('%.0f', 30 * DAY_MS)
  redis_call('PEXPIRE', Key.job_steps(id), retention)
  redis_call('PEXPIRE', Key.job_order(id), retention)
end

-- Returns whether the job has no influence on what is stored under a name: a signal, a child, something done outside.
local function is_from_outside(id, name)
  if name:sub(1, 7) == 'effect:' or name:sub(1, 6) == 'child\t' or name:sub(1, 6) == 'state\t' then return true end
  if name:sub(1, 5) ~= 'wait ' then return false end
  local stored = redis_call('HGET', Key.job_steps(id), name)
  return stored:find('^{"answer":"received"') ~= nil
end

-- Forgets the effects and items from a place on.
local function forget_units(id, begin)
  for _, name in ipairs(redis_call('ZRANGEBYSCORE', Key.job_order(id), begin, '+inf')) do
    if name:sub(1, 7) == 'effect:' or name:sub(1, 4) == 'unit' then
      redis_call('HDEL', Key.job_units(id), name)
      redis_call('HDEL', Key.job_steps(id), name)
    end
  end
end

-- Removes what was stored from the name `from` on, with `again` also the effects and items; a name without a place, too. The places
-- stay, so that what is done again stands before what stays.
function JobSteps.reset(id, from, again)
  local begin = redis_call('ZSCORE', Key.job_order(id), from) or '+inf'
  redis_call('PERSIST', Key.job_steps(id))
  redis_call('PERSIST', Key.job_order(id))
  if again then forget_units(id, begin) end
  for _, name in ipairs(redis_call('HKEYS', Key.job_steps(id))) do
    local place = redis_call('ZSCORE', Key.job_order(id), name)
    if (not place or tonumber(place) >= (tonumber(begin) or math.huge)) and not is_from_outside(id, name) then
      redis_call('HDEL', Key.job_steps(id), name)
    end
  end
end
