-- forget_forms: delete what a person has answered in all forms
-- ARGV    tenant, channel, address
-- RETURNS how many forms had answers
-- EVENTS  none

return function(tenant, channel, address)
  local forms = redis_call('SMEMBERS', Key.forms_of(tenant, channel, address))
  for _, form in ipairs(forms) do
    redis_call('DEL', Key.form_row(tenant, channel, address, form))
    redis_call('ZREM', Key.form_people(tenant, form), channel .. ':' .. address)
  end
  redis_call('DEL', Key.forms_of(tenant, channel, address))
  return #forms
end
