-- write_lasting: write a key with one command, and give it a lifetime, in one step
-- ARGV    verb, key, kept_ms:int, words:rest
-- RETURNS what the command returns
-- EVENTS  none
-- INVARIANT I16 no key stays for ever because a process or a primary was lost between two commands

return function(verb, key, kept_ms, words)
  local reply = redis_call(verb, key, unpack(words))
  redis_call('PEXPIRE', key, kept_ms)
  return reply
end
