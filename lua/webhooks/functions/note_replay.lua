-- note_replay: note that what was given up for a webhook is sent again, each message with all its attempts
-- ARGV    id
-- RETURNS 1
-- EVENTS  none

return function(id)
  redis_call('HSET', Key.health(id), 'replayed', string.format('%.0f', now))
  redis_call('PEXPIRE', Key.health(id), 30 * DAY_MS)
  return 1
end
