-- store_webhook: create a webhook, or replace one
-- ARGV    tenant, id, record, most:int
--         record: the webhook as JSON; most: how many webhooks the tenant may have, 0: replace an existing webhook only
-- RETURNS 1, or 0 if the tenant has `most` webhooks, or if the webhook to replace does not exist;
--         the id of another webhook of the tenant with the same URL and one of the same events, if it is a new one
-- EVENTS  none

local function shares_event(events, others)
  local known = {}
  for _, event in ipairs(events) do known[event] = true end
  for _, event in ipairs(others) do
    if known[event] then return true end
  end
  return false
end

return function(tenant, id, record, most)
  local name = tenant .. '/' .. id
  if redis_call('HEXISTS', Key.webhooks(), name) == 0 then
    local owned, new = 0, cjson.decode(record)
    local fields = redis_call('HGETALL', Key.webhooks())
    for position = 1, #fields, 2 do
      if string.match(fields[position], '^(.*)/') == tenant then
        owned = owned + 1
        local other = cjson.decode(fields[position + 1])
        if other.url == new.url and shares_event(other.events, new.events) then return other.id end
      end
    end
    if owned >= most then return 0 end
  end
  redis_call('HSET', Key.webhooks(), name, record)
  redis_call('HINCRBY', Key.webhooks(), 'version', 1)
  return 1
end
