"""The page of a message that asks: who has answered, live; the question is closed there."""

import uuid
from typing import Any

from core.admission.api_keys import ApiKeys
from core.directory import Directory
from core.redis.store import Store
from core.sessions import Sessions
from tests.delivery.console.conftest import Person

ROWS = "document.querySelector('.rows').textContent"


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
    await person.sees("Напоминание уходит, людей: 1.")
    await person.sees("Напоминание ")
    await person.sees("напоминание 1")
    await call("POST", f"/v1/deliveries/{made['id']}/answers", {"recipient": people[1]["id"], "value": "yes"})
    await person.sees("Приду: 1 из 1, ждут места: 1")
    await person.sees("ждёт места")
    await person.keeps_picture("message-answered-ru-390")
    await person.browser.wait_for("!document.querySelector('.toast')")
    await person.browser.run("scrollTo(0, 0)")
    await person.keeps_picture("message-answers-ru-390")
    assert await person.sideways() <= 0
    await person.visit(f"message/{made['id']}", width=1280)
    await person.sees("Close the question")
    await person.sees("waits for a place")
    await person.keeps_picture("message-answers-en-1280")
    await person.visit(f"message/{made['id']}", language="ru", width=390)
    await person.sees("Закрыть вопрос")
    await person.presses("Закрыть вопрос")
    await person.confirms()
    await person.sees("Вопрос закрыт")


REPEATS = "[...document.querySelectorAll('.rows button')].filter((one) => one.innerText === 'Повторить').length"


async def test_writing_asks_for_an_answer_in_two_taps(person: Person, axe_source: str) -> None:
    who = f"reader-{uuid.uuid4().hex[:6]}"
    address = f"18{uuid.uuid4().int % 10**6:06d}"
    user = {"id": who, "name": f"Reader {who}", "contacts": {"telegram-bot": address}}
    await person.running.call("POST", "/v1/users", user)
    await person.visit("write", width=390)
    await person.writes("Find a group", who)
    await person.presses(f"Reader {who}")
    await person.writes("Text", f"Read this, {who}")
    await person.chooses("Answer", "choice")
    await person.writes("Options", "Go=20\nStay")
    await person.keeps_picture("write-choice-en-390")
    await person.has_no_barrier_on_a_phone(axe_source, "write-choice")
    await person.chooses("Ответ", "confirm")
    await person.chooses("Кто увидит, что ответил человек", "hidden")
    await person.presses("Проверить")
    await person.sees("I have read it")
    await person.presses("Отправить 1 человеку")
    await person.sees("пока без ответа: 1")
    (made,) = (await person.running.call("GET", f"/v1/deliveries?text={who}"))["deliveries"]
    assert (made["answer"]["kind"], made["answer"]["visible"]) == ("confirm", "hidden")
    await person.presses("Повторить")
    await person.sees("Очистить всё")
    await person.chooses("Ответ", "choice")
    await person.writes("Варианты", "Еду=20\n\nНе еду")
    await person.presses("Проверить")
    await person.presses("Отправить 1 человеку")
    await person.sees("Еду: 0 из 20")
    (made, _) = (await person.running.call("GET", f"/v1/deliveries?text={who}"))["deliveries"]
    assert made["answer"]["options"] == [{"key": "1", "text": "Еду", "places": 20}, {"key": "2", "text": "Не еду"}]
    assert made["answer"]["visible"] == "hidden", "as the message that is repeated"
    given = {"sender": {"id": "office"}, "recipients": [{"id": who}], "text": f"A place for {who}", "kind": "place"}
    await person.running.call("POST", "/v1/deliveries", given)
    await person.go(f"messages?text={who}")
    await person.sees("от самой Ады")
    assert await person.browser.run(REPEATS) == 2, "not what Ada writes by itself"


async def test_reminders_another_way_and_a_number_of_people_are_set_where_the_question_is_written(
    person: Person, axe_source: str
) -> None:
    who = f"asked-{uuid.uuid4().hex[:6]}"
    contacts = {"telegram-bot": f"18{uuid.uuid4().int % 10**6:06d}", "sms": f"+7916{uuid.uuid4().int % 10**7:07d}"}
    await person.running.call("POST", "/v1/users", {"id": who, "name": f"Человек {who}", "contacts": contacts})

    async def asked() -> dict[str, Any]:
        newest = (await person.running.call("GET", f"/v1/deliveries?text={who}"))["deliveries"][0]
        return dict(newest["answer"])

    await person.visit("write", language="ru", width=390)
    await person.writes("Найти группу", who)
    await person.presses(f"Человек {who}")
    await person.writes("Текст", f"Придёте? {who}")
    await person.chooses("Ответ", "confirm")
    await person.presses("Напоминания и другие условия")
    await person.chooses("Напомнить тем, кто не ответил", "PT12H")
    await person.writes("Сколько раз", "2")
    await person.browser.press("Tab")
    await person.chooses("Потом снова через", "P1D")
    await person.chooses("Спросить не ответивших ещё и другим способом", "P2D")
    await person.sees("SMS только тем, кто не ответит: не больше 1 (4,20 ₽)")
    await person.sees("SMS: напоминаний не больше 2 (8,40 ₽)")
    await person.presses("Опоздавшие ответы считаются")
    assert await person.barriers(axe_source) == []
    assert await person.sideways() <= 0
    await person.keeps_picture("write-terms-ru-390")
    await person.presses("Проверить")
    await person.presses("Отправить 1 человеку")
    await person.sees("пока без ответа: 1")
    made = await asked()
    assert made["remind"] == {"after": "PT12H", "every": "P1D", "most": 2}
    assert (made["escalate"], made["late"]) == ({"after": "P2D", "channels": ["sms"]}, "count")
    await person.sees("Опоздавшие ответы считаются")
    await person.sees("другим способом через: 2 дня, SMS")

    await person.presses("Повторить")
    await person.sees("Очистить всё")
    await person.chooses("Напомнить тем, кто не ответил", "")
    await person.chooses("Спросить не ответивших ещё и другим способом", "")
    await person.writes("Сколько людей должно согласиться", "1")
    await person.browser.press("Tab")
    await person.sees("По очереди – только подтверждение или выбор")
    await person.presses("Отправить всеми")
    await person.chooses("Спросить следующих через", "PT3H")
    await person.sees("1 получатель")
    await person.presses("Проверить")
    await person.presses("Отправить 1 человеку")
    await person.sees("пока без ответа: 1")
    made = await asked()
    assert (made["need"], made["wave"], made["late"]) == (1, "PT3H", "count")
    assert not {"remind", "escalate"} & made.keys()


async def test_who_has_not_answered_is_found_with_one_tap_and_answered_for_by_keyboard(
    person: Person, axe_source: str
) -> None:
    call, number = person.running.call, uuid.uuid4().int % 10**6
    people = [
        {"id": f"rare-{number}-{n}", "name": name, "contacts": {"telegram-bot": f"17{number:06d}{n}"} if n < 2 else {}}
        for n, name in enumerate(("Анна", "Борис", "Вера"))
    ]
    body = {
        "sender": {"id": "t-9", "name": "Teacher"},
        "text": "Сколько вас будет?",
        "recipients": people,
        "channels": ["telegram-bot"],
        "answer": {"kind": "number"},
    }
    made = await call("POST", "/v1/deliveries", body)
    await person.visit(f"message/{made['id']}")
    await person.sees("no answer yet: 2")
    await call("POST", f"/v1/deliveries/{made['id']}/answers", {"recipient": people[0]["id"], "value": "2"})
    await person.sees("no answer yet: 1")
    order = await person.browser.run("[...document.querySelectorAll('section.reasons li')].map((one) => one.innerText)")
    assert order[:3] == ["no answer yet: 1", "not reached: 1", "answered: 1"]
    await person.presses("no answer yet: 1")
    await person.sees_no("Вера")
    assert await person.barriers(axe_source) == []
    await person.keeps_picture("message-unanswered-en-1280")
    await person.browser.run("document.querySelector('.rows button').focus()")
    await person.browser.press("Enter")
    await person.writes("Answer", "a lot")
    await person.browser.press("Enter")
    await person.sees("The question asks for another kind of answer")
    await person.writes("Answer", "3,5")
    await person.keeps_picture("message-answer-for-en-1280")
    await person.browser.press("Enter")
    await person.sees("answered: 2")
    page = await call("GET", f"/v1/deliveries/{made['id']}/answers?state=answered")
    assert {(one["name"], one["answer"]["by"], one["answer"]["value"]) for one in page["recipients"]} == {
        ("Анна", "on_behalf", "2"),
        ("Борис", "on_behalf", "3.5"),
    }
    await person.presses("answered: 2")
    await person.sees("entered by")
    await call("POST", f"/v1/deliveries/{made['id']}/answers", {"recipient": people[1]["id"], "value": "4"})
    await person.sees(": 3.5")  # the answer before
    await person.has_no_barrier_on_a_phone(axe_source, "message-unanswered")


async def test_hidden_answers_are_opened_by_an_administrator_with_a_reason(
    person: Person, store: Store, axe_source: str
) -> None:
    call, number = person.running.call, uuid.uuid4().int % 10**6
    await call("POST", "/v1/users", {"id": f"t-{number}", "name": "Olga", "role": "staff"})
    people = [{"id": f"h-{number}", "name": "Анна", "contacts": {"telegram-bot": f"17{number:06d}1"}}]
    answer = {
        "kind": "choice",
        "options": [{"key": "a", "text": "Доволен"}, {"key": "b", "text": "Устал"}],
    }
    body: dict[str, Any] = {
        "sender": {"id": f"t-{number}"},
        "text": "Как вы?",
        "recipients": people,
        "channels": ["telegram-bot"],
    }
    made = await call("POST", "/v1/deliveries", {**body, "answer": {**answer, "visible": "hidden"}})
    await call("POST", f"/v1/deliveries/{made['id']}/answers", {"recipient": people[0]["id"], "value": "b"})
    session = await Sessions(store, Directory(store), ApiKeys(store)).begin_as_person("default", f"t-{number}")
    staff = Person(person.browser, person.running, session.secret)
    await staff.visit(f"message/{made['id']}", language="ru", width=390)
    await staff.sees("с ответом: 1")
    await staff.sees("Кто увидит, что ответил человек: Только администратор, с указанием причины")
    await staff.keeps_picture("message-hidden-of-staff-ru-390")
    assert "Показать, кто что ответил" not in await staff.browser.run("document.body.innerText")
    await staff.sees("Анна")
    assert "Устал" not in await staff.browser.run(ROWS)
    await person.visit(f"message/{made['id']}", language="ru", width=390)
    await person.sees("Анна")
    assert "Устал" not in await person.browser.run(ROWS)
    await person.presses("Показать, кто что ответил")
    await person.browser.run("document.querySelector('dialog [name=why]').value = 'жалоба'")
    await person.confirms()
    await person.browser.wait_for(f"{ROWS}.includes('Устал')")
    assert await person.barriers(axe_source) == []
    await person.keeps_picture("message-hidden-ru-390")
    (read, *_) = (await call("GET", "/v1/actions?limit=1"))["actions"]
    assert (read["what"], read["why"]) == (f"read hidden answers of {made['id']}", "жалоба")
