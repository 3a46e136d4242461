-- resign: a worker that ends gives the timer up, and those who sleep are woken, so that one of them keeps it from now on
-- ARGV    owner
-- RETURNS 1, or 0 if somebody else keeps it
-- EVENTS  del of every bell of the shard

if redis.call('GET', timer_key()) ~= owner then return 0 end
redis.call('DEL', timer_key())
for _, tube in ipairs(redis.call('HKEYS', channels_key())) do redis.call('DEL', bell_key(tube)) end
return 1
