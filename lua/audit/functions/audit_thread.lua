-- audit_thread: reads a thread and its entries in the lists of its inbox, in one atomic read
-- ARGV    id
-- RETURNS [last, messages, unread, score in the inbox, score among the unread threads, 1 if there are any, entries]; [] if it is gone.
--         entries: `event:<name> <number>`, and `message:<number> <ms> <side> <event>` of each message
-- EVENTS  none

return function(id)
  local thread = Key.thread(id)
  local tenant, inbox, last, messages, unread = unpack(redis_call('HMGET', thread, 'tenant', 'inbox', 'last', 'messages', 'unread'))
  if not tenant then return {} end
  local entries = {}
  for _, field in ipairs(redis_call('HKEYS', thread)) do
    if string.find(field, '^event:') then
      entries[#entries + 1] = field .. ' ' .. redis_call('HGET', thread, field)
    elseif string.find(field, '^message:') then
      entries[#entries + 1] = field .. ' ' .. (string.match(redis_call('HGET', thread, field), '^%d+ %S+ %S+') or '')
    end
  end
  local unread_key = Key.unread_threads(tenant, inbox)
  return {
    last, messages, unread or '0', redis_call('ZSCORE', Key.inbox(tenant, inbox), id), redis_call('ZSCORE', unread_key, id),
    redis_call('EXISTS', unread_key), entries,
  }
end
