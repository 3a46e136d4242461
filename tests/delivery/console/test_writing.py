"""From writing a message to reading who was reached, in the browser."""

import pytest

from tests.delivery.console.conftest import Person


@pytest.mark.row("W-05", "W-06", "W-07", "W-08", "W-24")
async def test_a_message_to_a_group_is_checked_sent_and_shows_first_who_was_not_reached(person: Person) -> None:
    call = person.running.call
    await call("POST", "/v1/users", {"id": 501, "name": "Анна <script>", "contacts": {"sms": ["+79990000501"]}})
    await call("POST", "/v1/users", {"id": 502, "name": "Борис 🎓"})
    await call("POST", "/v1/groups", {"id": "ИВТ-21", "members": [501, 502]})
    await person.visit("write", language="ru", width=390)
    await person.presses("ИВТ-21")
    await person.writes("Текст", "Завтра в 10:00 \u202bשלום")
    await person.visit("home", language="ru", width=390)
    await person.go("write")
    await person.presses("Проверить и отправить")
    await person.sees("2 человека")
    await person.sees("1 человек не получит: нет контакта.")
    await person.keeps_picture("write-check-ru-light-390")
    await person.presses("Отправить 1 человеку")
    await person.sees("Не получили: 1")
    await person.sees("Получили: 1")
    text = await person.browser.text("#content")
    assert text.index("Борис 🎓") < text.index("Анна <script>")
    await person.keeps_picture("message-outcomes-ru-light-390")
    await person.go("messages")
    await person.sees("Завтра в 10:00")
    await person.sees("Получили 1 из 2")
    await person.keeps_picture("messages-ru-light-390-rows")


@pytest.mark.row("W-22")
async def test_rows_do_not_move_under_the_pointer_and_a_button_offers_the_new_ones(person: Person) -> None:
    await send(person, "The first")
    await person.visit("messages")
    await person.sees("The first")
    x, y = await person.middle_of("document.querySelector('.rows .row')")
    await person.browser.hover_at(x, y)
    await send(person, "The second")
    await person.sees("1 new. Show it")
    assert "The second" not in await person.browser.text("#content")
    await person.presses("1 new. Show it")
    await person.sees("The second")
    await person.keeps_picture("messages-rows-en-light-1280")


async def send(person: Person, text: str) -> None:
    body = {"sender": {"id": 1}, "text": text, "recipients": ["1=sms:+79990000001"], "channels": ["sms"]}
    await person.running.call("POST", "/v1/deliveries", body)
