-- migrate_layout: writes the number of the layout in the place of another
-- ARGV    old, new
-- RETURNS what was found, false if there was nothing; `new` is written only if it was `old`
-- EVENTS  none

return function(old, new)
  local found = redis_call('GET', Key.layout())
  if found == old then redis_call('SET', Key.layout(), new) end
  return found
end
