-- free_place: take the place of a person whose data are deleted, or that can be told nothing, and give it to who has waited longest
-- ARGV    suffix, recipient, number:int
--         recipient: "i" or "s" and its id, of a member of a group chat nothing; number: of its answer
-- RETURNS 1, or 0 if it has no place and waits for none, or the question is closed
-- EVENTS  answer; for deliveries that fell due before: outcomes, reported, released and finished
-- INVARIANT I28 no option has more people than places, and who has waited longest gets a free one

return function(suffix, recipient, number)
  local facts = redis_call('HMGET', Key.history(suffix), 'answer', 'answers_closed', 'answers_until', 'answers_member:' .. number)
  if not facts[1] or facts[2] or facts[3] and now >= tonumber(facts[3]) then return 0 end
  return Answers.free_place(suffix, cjson.decode(facts[1]), number, facts[4] or recipient) and 1 or 0
end
