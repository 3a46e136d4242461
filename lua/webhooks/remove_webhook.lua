-- remove_webhook: delete a webhook with the record of its attempts
-- ARGV    tenant, id
-- RETURNS 1, or 0 if there is no such webhook
-- EVENTS  none

if redis.call('HDEL', webhooks_key(), tenant .. '/' .. id) == 0 then return 0 end
redis.call('HINCRBY', webhooks_key(), 'version', 1)
redis.call('DEL', attempts_key(id), health_key(id))
return 1
