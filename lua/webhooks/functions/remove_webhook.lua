-- remove_webhook: delete a webhook; the record of its attempts is in the shard of its tenant
-- ARGV    tenant, id
-- RETURNS 1, or 0 if there is no such webhook
-- EVENTS  none

return function(tenant, id)
  if redis_call('HDEL', Key.webhooks(), tenant .. '/' .. id) == 0 then return 0 end
  redis_call('HINCRBY', Key.webhooks(), 'version', 1)
  return 1
end
