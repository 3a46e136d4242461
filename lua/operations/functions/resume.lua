-- resume: tasks of a paused tube are claimed again, at once
-- ARGV    tube
-- RETURNS 1, or 0 if it was not paused
-- EVENTS  del of the bell

return function(tube)
  if redis_call('HDEL', Key.options(), tube .. ':paused') == 0 then return 0 end
  -- While a tube is paused its workers sleep without the bell: only the deletion of a key that exists is an event.
  redis_call('SET', Key.bell(tube), 'resumed', 'PX', 1000)
  redis_call('DEL', Key.bell(tube))
  return 1
end
