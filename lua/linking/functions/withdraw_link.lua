-- withdraw_link: forget a code that could not be mailed; it does not count as a mail
-- ARGV    tenant, link, call
-- RETURNS 1, or 0 if there is another code meanwhile
-- EVENTS  none

return function(tenant, link, call)
  local known = redis_call('HMGET', Key.link(tenant, link), 'call', 'user')
  if known[1] ~= call then return 0 end
  redis_call('DEL', Key.link(tenant, link))
  for _, of in ipairs({ link, 'user:' .. known[2] }) do
    if redis_call('EXISTS', Key.linkmails(tenant, of)) == 1 then redis_call('DECR', Key.linkmails(tenant, of)) end
  end
  return 1
end
