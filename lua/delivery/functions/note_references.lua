-- note_references: note which entries the messages in a provider's dialogs belong to, for read marks that come later
-- ARGV    channel, account, ttl_ms:int, references:json
--         references: [[peer, message number, entry], …]; entry: a text that is returned as it is
-- RETURNS the entries that a read mark covers already
-- EVENTS  none

-- A dialog keeps its newest references. A read mark covers all before it, so a forgotten one is rarely missed.
local MOST = 100

return function(channel, account, ttl_ms, references)
  local covered = {}
  for _, reference in ipairs(references) do
    local key = Key.references(channel, account, reference[1])
    if reference[2] <= tonumber(redis_call('ZSCORE', key, 'read') or '-1') then
      covered[#covered + 1] = reference[3]
    else
      redis_call('ZADD', key, reference[2], reference[3])
      redis_call('ZREMRANGEBYRANK', key, 0, -MOST - 1)
      redis_call('PEXPIRE', key, ttl_ms)
    end
  end
  return covered
end
