-- release_timer: a worker that stops releases the timer, and the sleeping workers are woken, so that one of them keeps it
-- ARGV    owner
-- RETURNS 1, or 0 if another worker keeps it
-- EVENTS  del of the bells of every channel and of every tube that has had a task

return function(owner)
  if Timers.keeper() ~= owner then return 0 end
  redis_call('DEL', Key.timer())
  local tubes = {}
  for _, channel in ipairs(redis_call('HKEYS', Key.channels())) do tubes[channel] = true end
  for _, field in ipairs(redis_call('HKEYS', Key.states())) do tubes[string.match(field, '^(.*):')] = true end
  for tube in pairs(tubes) do redis_call('DEL', Key.bell(tube)) end
  return 1
end
