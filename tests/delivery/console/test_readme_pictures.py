"""A school as the README shows it: a question to a class on a phone, who was not reached, what an office has sent.

`tools/console_pictures.py` makes the pictures of the README from these.
"""

import uuid
from datetime import UTC, datetime, timedelta

from core.redis.store import Store
from tests.delivery.console.conftest import Person
from tests.delivery.console.test_daily_work import signed_in
from tests.support.waiting import until

CLASS = (
    *("Агеев Пётр", "Белова Яна", "Ветров Лев", "Гусева Мила", "Дёмин Олег", "Ежова Анна"),
    *("Жуков Илья", "Зимина Вера", "Ильин Марк", "Котова Дарья", "Лапин Егор", "Мельник София"),
)


async def a_class(person: Person, name: str) -> str:
    """A group of twelve: nine with a chat or a phone, three without. Returns its id."""
    group, number = f"{name}-{uuid.uuid4().hex[:6]}", uuid.uuid4().int % 10**6
    await person.running.call("POST", "/v1/groups", {"id": group, "title": name})
    for place, who in enumerate(CLASS):
        address = f"{number:06d}{place}"
        by_phone = {"vk": f"2{address}", "sms": f"+7{9160000000 + number}"}
        contacts = by_phone if place % 2 else {"telegram-bot": f"17{address}"}
        if place in (3, 7, 10):
            contacts = {}
        own = f"{group}-{place}"
        await person.running.call("POST", "/v1/users", {"id": own, "name": who, "contacts": contacts})
        await person.running.call("PUT", f"/v1/groups/{group}/members/{own}")
        number += 1
    return group


async def test_a_secretary_asks_a_class_on_a_phone_and_sees_who_was_not_reached(person: Person, store: Store) -> None:
    await a_class(person, "8А")
    secretary, _ = await signed_in(person, store, "staff")
    await secretary.visit("write", language="ru", width=390)
    await secretary.writes("Найти группу", "8А")
    await secretary.presses("8А")
    await secretary.writes("Текст", "Здравствуйте, {{имя|родители}}! Придёте на собрание в пятницу в 18:00?")
    await secretary.chooses("Ответ", "choice")
    await secretary.writes("Варианты", "Приду\nНе приду")
    await secretary.sees("12 получателей")
    await secretary.browser.run("document.querySelector('#text').closest('.field').scrollIntoView()")
    await secretary.keeps_picture("readme-write-ru-390")
    await secretary.presses("Проверить")
    await secretary.presses("Отправить 9 людям")
    await secretary.sees("Получили 9 из 12")
    await secretary.sees("пока без ответа: 9")
    await secretary.browser.wait_for("!document.querySelector('.toast')")
    await secretary.browser.run("scrollTo(0, 0)")
    await secretary.keeps_picture("readme-message-ru-390")


async def test_the_office_sees_what_it_has_sent_with_a_verdict_for_each(person: Person, store: Store) -> None:
    group = await a_class(person, "8A")
    office, own = await signed_in(person, store, "staff")
    tomorrow = f"{datetime.now(UTC) + timedelta(days=1):%FT08:00:00Z}"
    confirms, offers = (
        {"kind": "confirm"},
        {"kind": "choice", "options": [{"key": "1", "text": "Yes"}, {"key": "2", "text": "No"}]},
    )
    for text, more in (
        ("Lessons end at 13:00 today.", {}),
        ("Who can help at the book fair on Saturday?", {"answer": offers}),
        ("The trip to the museum is on Friday. Please confirm that you have read it.", {"answer": confirms}),
        ("Reminder: the trip is tomorrow at 9:00.", {"deliver_at": tomorrow}),
    ):
        recipients = [{"group": group}] if "Lessons" not in text else [{"id": f"{group}-0"}, {"id": f"{group}-1"}]
        body = {"sender": {"id": own, "name": "Vera Secretary"}, "text": text, "recipients": recipients, **more}
        made = await person.running.call("POST", "/v1/deliveries", body)

        async def is_over(made: dict[str, str] = made) -> bool:
            found = await person.running.call("GET", f"/v1/deliveries/{made['id']}")
            return bool(found["state"] in ("finished", "scheduled"))

        await until(is_over)
    await office.visit("messages", width=1280)
    for verdict in ("Reached 2 of 2", "Reached 9 of 12"):
        await office.sees(verdict)
    await office.keeps_picture("readme-messages-en-1280")
