-- note_form_answer: store a person's answer to a question of a form
-- ARGV    tenant, form, channel, address, field, answer, at_ms:int, kept_ms:int, most:int
--         field: the name of the question; answer: JSON; at_ms: when it was given; most: rows of a form, the oldest go
-- RETURNS how many rows the form has
-- EVENTS  none

return function(tenant, form, channel, address, field, answer, at_ms, kept_ms, most)
  local row, people = Key.form_row(tenant, channel, address, form), Key.form_people(tenant, form)
  redis_call('HSET', row, field, answer)
  redis_call('PEXPIRE', row, kept_ms)
  redis_call('ZADD', people, 'NX', at_ms, channel .. ':' .. address)
  redis_call('ZREMRANGEBYRANK', people, 0, -most - 1)
  redis_call('PEXPIRE', people, kept_ms)
  redis_call('SADD', Key.forms(tenant), form)
  redis_call('PEXPIRE', Key.forms(tenant), kept_ms)
  redis_call('SADD', Key.forms_of(tenant, channel, address), form)
  redis_call('PEXPIRE', Key.forms_of(tenant, channel, address), kept_ms)
  return redis_call('ZCARD', people)
end
