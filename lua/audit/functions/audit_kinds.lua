-- audit_kinds: reads whether kinds of tasks are listed and whether a task has them, in one atomic read
-- ARGV    names:rest
-- RETURNS for each [kind, 1 if it is listed, 1 if a live task has it]
-- EVENTS  none

return function(names)
  local reply = {}
  for _, kind in ipairs(names) do
    local listed = redis_call('ZSCORE', Key.kinds(), kind) and 1 or 0
    reply[#reply + 1] = { kind, listed, redis_call('EXISTS', Key.by('kind', kind)) }
  end
  return reply
end
