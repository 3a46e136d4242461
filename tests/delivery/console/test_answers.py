"""The page of a message that asks: who has answered, live; the question is closed there."""

import uuid

from tests.delivery.console.conftest import Person


async def test_the_page_of_a_message_shows_who_has_answered(person: Person) -> None:
    call, number = person.running.call, uuid.uuid4().int % 10**6
    people = [
        {"id": f"asked-{number}-{n}", "name": name, "contacts": {"telegram-bot": f"17{number:06d}{n}"}}
        for n, name in enumerate(("Анна", "Борис"))
    ]
    body = {
        "sender": {"id": "t-9", "name": "Teacher"},
        "text": "Придёте?",
        "recipients": people,
        "channels": ["telegram-bot"],
        "answer": {
            "kind": "choice",
            "options": [{"key": "yes", "text": "Приду", "places": 1}, {"key": "no", "text": "Не приду"}],
            "remind": {"after": "PT12H"},
        },
    }
    made = await call("POST", "/v1/deliveries", body)
    await person.visit(f"message/{made['id']}", language="ru", width=390)
    await person.sees("пока без ответа: 2")
    await call("POST", f"/v1/deliveries/{made['id']}/answers", {"recipient": people[0]["id"], "value": "yes"})
    await person.sees("с ответом: 1")
    await person.sees("Приду: 1 из 1, ждут места: 0")
    await person.sees("Следующее напоминание")
    await person.presses("Напомнить")
    await person.confirms()
    await person.sees("Напоминание уходит: 1 человеку.")
    await person.sees("Напоминание ")
    await person.browser.run("scrollTo(0, document.body.scrollHeight)")
    await person.sees("напоминание 1")
    await call("POST", f"/v1/deliveries/{made['id']}/answers", {"recipient": people[1]["id"], "value": "yes"})
    await person.sees("Приду: 1 из 1, ждут места: 1")
    await person.sees("ждёт места")
    await person.keeps_picture("message-answered-ru-390")
    await person.browser.run("scrollTo(0, 0)")
    await person.keeps_picture("message-answers-ru-390")
    assert await person.sideways() <= 0
    await person.visit(f"message/{made['id']}", width=1280)
    await person.sees("Close the question")
    await person.browser.run("scrollTo(0, document.body.scrollHeight)")
    await person.sees("waits for a place")
    await person.keeps_picture("message-answers-en-1280")
    await person.visit(f"message/{made['id']}", language="ru", width=390)
    await person.sees("Закрыть вопрос")
    await person.presses("Закрыть вопрос")
    await person.confirms()
    await person.sees("Вопрос закрыт")


async def test_writing_asks_for_a_confirmation_with_one_tap(person: Person) -> None:
    who = f"reader-{uuid.uuid4().hex[:6]}"
    address = f"18{uuid.uuid4().int % 10**6:06d}"
    user = {"id": who, "name": f"Reader {who}", "contacts": {"telegram-bot": address}}
    await person.running.call("POST", "/v1/users", user)
    await person.visit("write", width=390)
    await person.writes("Find a group", who)
    await person.presses(f"Reader {who}")
    await person.writes("Text", f"Read this, {who}")
    await person.presses("Ask everybody to confirm having read it")
    await person.keeps_picture("write-confirm-en-390")
    await person.presses("Check")
    await person.sees("I have read it")
    await person.presses("Send to 1 person")
    await person.sees("no answer yet: 1")
    (made,) = (await person.running.call("GET", f"/v1/deliveries?text={who}"))["deliveries"]
    assert made["answer"]["kind"] == "confirm"
