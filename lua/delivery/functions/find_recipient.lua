-- find_recipient: which of these deliveries may have a recipient, by the text of their pages of people
-- ARGV    person, number, text, size:int, pages:int, suffixes:rest
--         person: its id as text; number, text: how a row of this recipient begins if its id is a number ('' if it cannot be one), and if
--         it is a text; size: people of a page; pages: no further delivery is read after this number
-- RETURNS [how many of the deliveries were read, then suffix, page, … of each page that may have it]; of one in which it has answered as
--         a member of a group chat, -1 - the number of its answer in place of a page
-- EVENTS  none

return function(person, number, text, size, pages, suffixes)
  local found = { 0 }
  for _, suffix in ipairs(suffixes) do
    if pages <= 0 then break end
    found[1] = found[1] + 1
    local history = Key.history(suffix)
    local last = math.ceil((tonumber(redis_call('HGET', history, 'recipients')) or 0) / size) - 1
    for _, member in ipairs(redis_call('HMGET', history, 'answers_number:i' .. person, 'answers_number:s' .. person)) do
      if member then
        found[#found + 1] = suffix
        found[#found + 1] = -1 - tonumber(member)
      end
    end
    for page = 0, last do
      local rows = redis_call('HGET', history, 'people:' .. page) or ''
      pages = pages - 1
      if string.find(rows, text, 1, true) or number ~= '' and string.find(rows, number, 1, true) then
        found[#found + 1] = suffix
        found[#found + 1] = page
      end
    end
  end
  return found
end
