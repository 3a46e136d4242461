-- withdraw_link: forget a code that could not be mailed; it does not count as a mail
-- ARGV    tenant, link, call
-- RETURNS 1, or 0 if there is another code meanwhile
-- EVENTS  none

local known = redis.call('HMGET', link_key(tenant, link), 'call', 'user')
if known[1] ~= call then return 0 end
redis.call('DEL', link_key(tenant, link))
for _, of in ipairs({ link, 'user:' .. known[2] }) do
  if redis.call('EXISTS', linkmails_key(tenant, of)) == 1 then redis.call('DECR', linkmails_key(tenant, of)) end
end
return 1
