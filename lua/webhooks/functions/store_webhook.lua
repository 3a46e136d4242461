-- store_webhook: create a webhook, or replace one
-- ARGV    tenant, id, record, most:int
--         record: the webhook as JSON; most: how many webhooks the tenant may have, 0: replace an existing webhook only
-- RETURNS 1, or 0 if the tenant has `most` webhooks, or if the webhook to replace does not exist
-- EVENTS  none

return function(tenant, id, record, most)
  local name = tenant .. '/' .. id
  if redis_call('HEXISTS', Key.webhooks(), name) == 0 then
    local owned = 0
    for _, field in ipairs(redis_call('HKEYS', Key.webhooks())) do
      if string.match(field, '^(.*)/') == tenant then owned = owned + 1 end
    end
    if owned >= most then return 0 end
  end
  redis_call('HSET', Key.webhooks(), name, record)
  redis_call('HINCRBY', Key.webhooks(), 'version', 1)
  return 1
end
