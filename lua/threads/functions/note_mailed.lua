-- note_mailed: note the delivery of a mail, for what comes back to its address
-- ARGV    code, suffix
-- RETURNS 1
-- EVENTS  none

return function(code, suffix)
  redis_call('SET', Key.mailed(code), suffix, 'PX', Received.kept_ms())
  return 1
end
