-- remove_webhook: delete a webhook with the record of its attempts
-- ARGV    tenant, id
-- RETURNS 1, or 0 if there is no such webhook
-- EVENTS  none

return function(tenant, id)
  if redis_call('HDEL', Key.webhooks(), tenant .. '/' .. id) == 0 then return 0 end
  redis_call('HINCRBY', Key.webhooks(), 'version', 1)
  redis_call('DEL', Key.attempts(id), Key.health(id))
  return 1
end
