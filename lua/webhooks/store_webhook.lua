-- store_webhook: create a webhook, or replace one
-- ARGV    tenant, id, record, most:int
--         record: the webhook as JSON; most: how many webhooks the tenant may have, 0: replace an existing webhook only
-- RETURNS 1, or 0 if the tenant has `most` webhooks, or if the webhook to replace does not exist
-- EVENTS  none

local name = tenant .. '/' .. id
if redis.call('HEXISTS', webhooks_key(), name) == 0 then
  local owned = 0
  for _, field in ipairs(redis.call('HKEYS', webhooks_key())) do
    if string.match(field, '^(.*)/') == tenant then owned = owned + 1 end
  end
  if owned >= most then return 0 end
end
redis.call('HSET', webhooks_key(), name, record)
redis.call('HINCRBY', webhooks_key(), 'version', 1)
return 1
