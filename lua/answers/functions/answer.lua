-- answer: count an answer of a recipient to the question of a delivery
-- ARGV    suffix, tenant, recipient, number:int, event, value, text, by, who, channel, parcel:int, item:json, chat:int
--         recipient: "i" or "s" and its id; number: of the recipient in the delivery; event: names what the person did; by, who: press, or
--         on_behalf and who has entered it, or who has answered for a child; parcel, item: the message that a press has shown to have
--         arrived, as in record_report; an empty item for an answer that shows nothing; chat: the number of the recipient that is the
--         group chat in which a member has pressed, -1 for none; then number is -1 if the member is no recipient itself
-- RETURNS [result, row], ["missing"], or ["deleted"] if the data of the person were deleted; result: answered, changed, late; same,
--         closed, final, many: the answer before stays; a repeat of an event returns its first result
-- EVENTS  outcomes, reported, finished, answer, closed; for deliveries that fell due before: released as well
-- INVARIANT I26 an answer counts once for its person, and the totals are those of the answers; I28 no option has more people than
--           places, and who has waited longest gets a free one; I30 nothing joins a person and its answer to an anonymous question

return function(suffix, tenant, recipient, number, event, value, text, by, who, channel, parcel, item, chat)
  local facts = redis_call('HMGET', Key.history(suffix), 'tenant', 'answer', 'answers_closed', 'answers_until')
  if facts[1] ~= tenant or not facts[2] then return { 'missing' } end
  if number == -1 then number = Answers.member_number(suffix, recipient) end
  local question, row = cjson.decode(facts[2]), Answers.row_of(suffix, number)
  local known = Answers.result_of_event(row, event)
  if known then return { known, cjson.encode(row) } end
  if item[1] and Answers.is_deleted(suffix, channel, parcel, item) then return { 'deleted' } end
  local is_closed = facts[3] or facts[4] and now >= tonumber(facts[4])
  if is_closed then Answers.close(suffix) end
  if question.visible == 'anonymous' then
    local taken, shown = Answers.take_part(suffix, question, number, recipient, value, is_closed)
    return { taken, cjson.encode(shown) }
  end
  if item[1] then Answers.note_arrival(suffix, channel, parcel, item) end
  if chat >= 0 then Answers.note_chat(suffix, chat) end
  local is_voice, before = Answers.is_voice(suffix, by, who), row
  if is_voice then before = Answers.voice_of(row, who) or is_closed and Answers.without_voice(row) end
  local result = Answers.result_of(question, before, value, text, is_closed)
  if result == 'answered' or result == 'changed' or result == 'late' then
    local given = { value = value, text = text, by = by, who = who, channel = channel, is_in_chat = chat >= 0, is_voice = is_voice }
    row = Answers.store(suffix, question, number, recipient, row, given, event, result)
    Answers.close_when_complete(suffix, question)
  else
    Answers.note_event(suffix, number, row, event, result)
  end
  return { result, cjson.encode(row) }
end
