"""What a message costs before it is sent, and what the service said when it did not arrive."""

import uuid
from typing import Any

import pytest

from core.admission.api_keys import ApiKeys
from core.directory import Directory
from core.redis.store import Store
from core.sessions import Sessions
from sandbox.magic_recipients import MAGIC_RECIPIENTS
from tests.delivery.console.conftest import Person
from tests.support.waiting import until

ADDRESSES = {fault.name: address for address, fault in MAGIC_RECIPIENTS["sms"].items()}
WORDS = "502 Bad Gateway"
LAST_ROWS = "[...document.querySelectorAll('dialog[open] li')].map((one) => one.innerText).join('\\n')"


async def failed_message(person: Person) -> dict[str, Any]:
    """A message by SMS, for which the gateway answers a page of a proxy."""
    contacts = {"sms": ADDRESSES["bad_gateway"]}
    body = {
        "sender": {"id": 1, "name": "Anna"},
        "text": "Room 1",
        "recipients": [{"id": 1, "name": "Boris", "contacts": contacts}],
        "channels": ["sms"],
    }
    made = await person.running.call("POST", "/v1/deliveries", body)

    async def over() -> Any:
        found = await person.running.call("GET", f"/v1/deliveries/{made['id']}")
        return found if found["finished_at"] else None

    found: dict[str, Any] = await until(over)
    return found


@pytest.mark.parametrize(
    ("language", "width", "button", "silent"),
    [("ru", 390, "Что ответил сервис", "неясно"), ("en", 1280, "What the service answered", "not clear")],
)
async def test_the_page_of_a_message_has_the_words_of_the_service_and_each_call(
    person: Person, language: str, width: int, button: str, silent: str
) -> None:
    message = await failed_message(person)
    assert WORDS in message["recipients"][0]["outcomes"]["sms"]["detail"]
    await person.visit(f"message/{message['id']}", language=language, width=width)
    await person.sees(WORDS)
    await person.keeps_picture(f"message-words-{language}-{width}")
    await person.presses(button)
    await person.sees(silent)
    await person.browser.wait_for(f"{LAST_ROWS}.includes('502')")
    said = await person.browser.run(LAST_ROWS)
    assert "GET /cgi-bin/sendsms" in said
    assert WORDS in said
    assert ADDRESSES["bad_gateway"].lstrip("+") not in said
    assert "Room 1" not in said
    await person.keeps_picture(f"message-exchange-{language}-{width}")


@pytest.mark.parametrize(
    ("language", "width", "check", "sentence"),
    [
        ("ru", 390, "Проверить", "не больше 2 (8,40\xa0₽), скорее всего 1 (4,20\xa0₽)"),
        ("en", 1280, "Check", "at most 2 (8.40 ₽), probably 1 (4.20 ₽)"),
    ],
)
async def test_sms_come_last_and_the_check_says_what_is_paid_at_most_and_probably(
    person: Person, language: str, width: int, check: str, sentence: str
) -> None:
    call, name = person.running.call, f"Class {uuid.uuid4().hex[:6]}"
    ids = [f"{name}-{number}" for number in range(2)]
    for number, own in enumerate(ids):
        contacts = {"sms": f"+7996{uuid.uuid4().int % 10**7:07d}"} | (
            {"email": f"{uuid.uuid4().hex[:6]}@example.org"} if number else {}
        )
        await call("POST", "/v1/users", {"id": own, "name": f"Person {number}", "contacts": contacts})
    await call("POST", "/v1/groups", {"id": name, "title": name, "members": ids})
    text = f"Room {uuid.uuid4().hex[:6]}"
    await person.visit("write", language=language, width=width)
    await person.writes("Найти группу" if language == "ru" else "Find a group", name)
    await person.presses(name)
    await person.writes("Текст" if language == "ru" else "Text", text)
    assert await person.browser.run("document.querySelector('[name=order]:checked').value") == "first"
    await person.presses(check)
    await person.browser.wait_for(
        f"document.body.innerText.replace(/\\u00a0/g, ' ').includes({sentence.replace(chr(160), ' ')!r})"
    )
    await person.keeps_picture(f"check-money-{language}-{width}")
    sent = "Отправить 2 людям" if language == "ru" else "Send to 2 people"
    await person.presses(sent)

    async def arrived() -> Any:
        listed = (await call("GET", f"/v1/deliveries?text={text}&limit=1"))["deliveries"]
        return listed[0] if listed and listed[0]["finished_at"] else None

    found = await until(arrived)
    assert found["strategy"] == "first"
    assert list(found["channels"])[-1] == "sms"
    by_sms = found["channels"]["sms"]
    assert by_sms.get("sent", 0) + by_sms.get("delivered", 0) == 1
    assert by_sms["skipped"] == 1


@pytest.mark.parametrize(
    ("language", "width", "title", "by_sender"),
    [("ru", 390, "Расходы", "По отправителям"), ("en", 1280, "Costs", "By sender")],
)
async def test_the_page_of_costs_says_what_each_month_channel_and_sender_has_cost(
    person: Person, axe_source: str, language: str, width: int, title: str, by_sender: str
) -> None:
    call, sender = person.running.call, f"p-{uuid.uuid4().hex[:6]}"
    await call("POST", "/v1/users", {"id": sender, "name": f"Sender {sender}", "role": "staff"})
    people = [{"id": n, "contacts": {"sms": f"+7997{uuid.uuid4().int % 10**7:07d}"}} for n in range(3)]
    body = {"sender": {"id": sender}, "text": "Собрание в восемь. " * 5, "recipients": people, "channels": ["sms"]}
    by_ada = {**body, "sender": {"id": "notices"}, "recipients": people[:1]}
    made = [await call("POST", "/v1/deliveries", one) for one in (body, by_ada)]

    async def over() -> bool:
        return all([(await call("GET", f"/v1/deliveries/{one['id']}"))["finished_at"] for one in made])

    await until(over)
    listed = (await call("GET", "/v1/costs?limit=1"))["totals"]
    total = next(one for one in listed if one["channel"] == "sms")
    await person.visit("costs", language=language, width=width)
    await person.sees(title)
    value = total["sums"][0].removesuffix(" ₽")
    written = f"new Intl.NumberFormat({language!r}, {{minimumFractionDigits: 2}}).format({value})"
    await person.browser.wait_for(f"document.body.innerText.includes({written} + ' ₽')")
    await person.keeps_picture(f"costs-months-{language}-{width}")
    await person.go(f"costs?month={total['month']}")
    await person.sees(by_sender)
    row = f"[...document.querySelectorAll('.row')].find((one) => one.textContent.includes('Sender {sender}'))"
    await person.browser.wait_for(f"Boolean({row})")
    await person.sees("Уведомления" if language == "ru" else "Notices")  # Ada itself, in words and not by its id
    await person.browser.run(f"{row}.scrollIntoView()")  # a row that is out of sight is not drawn
    paid = "25,20" if language == "ru" else "25.20"
    await person.browser.wait_for(f"{row}.innerText.includes('{paid}')")
    assert await person.barriers(axe_source) == []
    assert await person.sideways() <= 0
    await person.keeps_picture(f"costs-month-{language}-{width}")


async def test_somebody_of_the_staff_sees_its_own_costs(person: Person, store: Store) -> None:
    call, number = person.running.call, uuid.uuid4().int % 10**7
    await call("POST", "/v1/users", {"id": number, "name": "Olga", "role": "staff"})
    session = await Sessions(store, Directory(store), ApiKeys(store)).begin_as_person("default", number)
    staff = Person(person.browser, person.running, session.secret)
    await staff.visit("home", width=390)
    assert await staff.browser.run("document.querySelector('#menu a[href=\"#/costs\"]') !== null")
    await staff.go("costs")
    await staff.sees("These are your own messages only.")
    await staff.sees("Nothing was sent")
    await staff.keeps_picture("costs-own-en-390")
