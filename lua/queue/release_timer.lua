-- release_timer: a worker that stops releases the timer, and the sleeping workers are woken, so that one of them keeps it
-- ARGV    owner
-- RETURNS 1, or 0 if another worker keeps it
-- EVENTS  del of the bells of every channel and of every tube that has had a task

if redis.call('GET', timer_key()) ~= owner then return 0 end
redis.call('DEL', timer_key())
local tubes = {}
for _, channel in ipairs(redis.call('HKEYS', channels_key())) do tubes[channel] = true end
for _, field in ipairs(redis.call('HKEYS', states_key())) do tubes[string.match(field, '^(.*):')] = true end
for tube in pairs(tubes) do redis.call('DEL', bell_key(tube)) end
return 1
