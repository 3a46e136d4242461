-- forget_requests: delete the requests of a person among some of those that are listed
-- ARGV    tenant, channel, address, from:int
--         from: the number of the first one that is looked at, from 0
-- RETURNS the number from which the caller goes on; -1 after the last one
-- EVENTS  none

local PAGE = 200

return function(tenant, channel, address, from)
  local all = Key.requestlist(tenant, 'all')
  local ids = redis_call('ZRANGE', all, from, from + PAGE - 1)
  local following = #ids < PAGE and -1 or from + PAGE
  for _, id in ipairs(ids) do
    local stored = redis_call('GET', Key.request(tenant, id))
    local request = stored and cjson.decode(stored) or {}
    if request.channel == channel and request.user_id == address then
      redis_call('DEL', Key.request(tenant, id))
      redis_call('ZREM', all, id)
      redis_call('ZREM', Key.requestlist(tenant, 'name:' .. request.name), id)
      if following > 0 then following = following - 1 end
    end
  end
  return following
end
