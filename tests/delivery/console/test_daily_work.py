"""What a secretary meets every day: times, a bad network, single people, a trial, Back, a long text."""

import json
import uuid
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aiohttp import ClientSession

from core.admission.api_keys import ApiKeys
from core.deliveries.channels import ChannelFacts, Channels
from core.directory import Directory
from core.monitoring.halts import Halts
from core.redis.keys import KEYS
from core.redis.store import Store
from core.sessions import Sessions
from tests.delivery.console.conftest import Person
from tests.delivery.console.test_writing import school
from tests.support.waiting import until

ERROR = "document.querySelector('#when').closest('.field').querySelector('.field-error')?.innerText ?? ''"
PAST = "Это время уже прошло"
WHEN = "import(document.querySelector('script[src]').src.replace('main.js', 'lib/when.js'))"


async def signed_in(person: Person, store: Store, role: str) -> tuple[Person, str]:
    """Somebody of this role with a contact, who owns nothing, and the id."""
    own = f"{role}-{uuid.uuid4().hex[:6]}"
    contacts = {"sms": f"+7998{uuid.uuid4().int % 10**7:07d}"}
    body = {"id": own, "name": "Vera Secretary", "role": role, "contacts": contacts}
    await person.running.call("POST", "/v1/users", body)
    session = await Sessions(store, Directory(store), ApiKeys(store)).begin_as_person("default", own)
    return Person(person.browser, person.running, session.secret), own


async def sets_time(person: Person, field: str, value: str) -> None:
    script = f"one.value = '{value}'; one.dispatchEvent(new Event('change'))"
    await person.browser.run(f"((one) => {{ {script} }})(document.querySelector('{field}'))")


async def write(person: Person, text: str, language: str = "ru") -> str:
    group = await school(person)
    await person.visit("write", language=language, width=390)
    await person.writes("Найти группу" if language == "ru" else "Find a group", group)
    await person.presses(group)
    await person.writes("Текст" if language == "ru" else "Text", text)
    return group


async def test_a_time_that_has_passed_is_refused_at_its_field_and_a_coming_one_is_said_in_words(person: Person) -> None:
    text = f"Завтра {uuid.uuid4().hex}"
    await write(person, text)
    yesterday, coming = (datetime.now(UTC) + timedelta(days=days) for days in (-1, 2))
    await sets_time(person, "#when", f"{yesterday:%FT07:30}")
    assert PAST in await person.browser.run(ERROR)
    await person.presses("Проверить")
    assert await person.browser.run("document.activeElement.id") == "when"
    await sets_time(person, "#when", f"{coming:%FT07:30}")
    assert await person.browser.run(ERROR) == ""
    await person.sees("послезавтра")
    weekday = ["понедельник", "вторник", "среда", "четверг", "пятница", "суббота", "воскресенье"][coming.weekday()]
    await person.sees(f"{weekday}, {coming.day} ")
    await person.keeps_picture("write-time-ru-390")
    await person.presses("Проверить")
    await person.sees("Будет отправлено: 1 из 3")
    assert "послезавтра" in await person.browser.text(".plain-list")
    await person.presses("Отправить 1 человеку")
    await person.sees("запланировано")
    await person.presses("Перенести")
    await person.browser.wait_for("Boolean(document.querySelector('dialog[open] #when'))")
    await sets_time(person, "dialog #when", f"{yesterday:%FT07:30}")
    assert PAST in await person.browser.run(ERROR)
    (found,) = (await person.running.call("GET", f"/v1/deliveries?text={text}"))["deliveries"]
    assert found["deliver_at"].startswith(f"{coming:%FT07:30}")
    await person.browser.press("Escape")
    whys = "[...document.querySelectorAll('[name=why] option')].map((one) => one.text)"
    assert "ждёт своего времени" in await person.browser.run(whys)
    assert "ещё отправляется" not in await person.browser.text(".rows")
    soon = {"deliver_at": f"{datetime.now(UTC):%FT%TZ}"}
    await person.running.call("PATCH", f"/v1/deliveries/{found['id']}", soon)
    await person.sees("Получили 1 из 3")
    await person.browser.wait_for(f"({whys}).join() === 'Все люди,нет контакта'")


@pytest.mark.parametrize(
    ("time", "quiet", "is_moved"),
    [("02:00", ["23:00", "07:00"], True), ("08:00", ["23:00", "07:00"], False), ("13:00", ["12:00", "14:00"], True)],
)
async def test_the_field_names_the_zone_and_the_quiet_hours(
    person: Person, time: str, quiet: list[str], is_moved: bool
) -> None:
    await person.visit("write")
    field = f"timeField('2030-01-04T{time}', {{timezone: 'UTC', quiet_hours: {quiet!r}}}, {{}})"
    text = f"(when) => when.{field}.map((one) => one?.textContent ?? '').join(' ')"
    said = await person.browser.run(f"{WHEN}.then({text})")
    assert "Time zone: UTC" in said
    assert f"From {quiet[0]} to {quiet[1]}" in said
    assert "Friday" in said
    assert (f"at about {quiet[1]}" in said) == is_moved


async def test_nothing_is_green_while_ada_is_away_and_the_banner_goes_without_a_press(person: Person) -> None:
    await person.visit("overview", language="ru")
    await person.browser.wait_for("Boolean(document.querySelector('#content .notice'))")
    await person.browser.block("*/v1/*")
    await person.sees("Ада не отвечает. Страница ждёт её.")
    await person.sees("Ада не отвечает: как дела сейчас, неизвестно.")
    assert not await person.browser.run("document.querySelector('#content .notice.good, .badge.live')")
    await person.keeps_picture("overview-away-ru")
    await person.browser.block()
    await person.sees_no("Ада не отвечает")


async def test_a_toast_does_not_outlive_its_page_and_says_what_is_missing_at_the_field(person: Person) -> None:
    await person.visit("write", language="ru")
    await person.presses("Проверить")
    await person.sees("Пока никто не выбран.")
    assert await person.browser.run("document.activeElement.id") == "search"
    assert await person.browser.run("document.querySelectorAll('.toast').length") == 1
    await person.go("messages")
    assert await person.browser.run("document.querySelectorAll('.toast').length") == 0


async def test_staff_finds_a_single_person_tries_the_message_once_and_comes_back_to_the_form(
    person: Person, store: Store
) -> None:
    secretary, own = await signed_in(person, store, "staff")
    group = await school(person)
    await secretary.visit("write", width=390)
    await secretary.writes("Find a group", "Аня script")
    mine = f"[...document.querySelectorAll('.picks label')].find((one) => one.innerText.includes({json.dumps(group)}))"
    await secretary.browser.wait_for(f"Boolean({mine})")
    await secretary.browser.run(f"{mine}.click()")
    assert "Аня <script>alert(1)</script>" in await secretary.browser.text(".chips")
    await secretary.writes("Text", "x" * 4100)
    await secretary.sees("4 characters too many. Shorten the text.")
    assert await secretary.browser.run("document.querySelector('#text').value.length") == 4100
    await secretary.writes("Text", f"For {group}: " + "ж" * 100)
    await secretary.sees("· 2 SMS")
    await secretary.writes("Find a group", group.upper())
    await secretary.presses(group)
    await secretary.sees("3 people will be written to")
    await secretary.presses(group)
    await secretary.sees("1 person will be written to")
    await secretary.keeps_picture("write-single-person-en-390")
    await secretary.presses("Check")
    await secretary.sees("Will be sent to 1 of 1")
    for _ in range(2):
        await secretary.presses("Send to myself first")
        await secretary.sees("Sent to you. Nobody else has received it.")
    await secretary.keeps_picture("write-trial-en-390")
    (trial,) = (await secretary.running.call("GET", f"/v1/deliveries?sender={own}"))["deliveries"]
    assert (trial["kind"], trial["tags"]) == ("trial", ["test"])
    assert (await secretary.running.call("GET", f"/v1/quota?sender={own}&role=staff"))["used"] == 0
    await secretary.browser.run("history.back()")
    await secretary.browser.wait_for("document.querySelector('#text')?.value.startsWith('For ')")
    await secretary.sees("1 person will be written to")
    await secretary.presses("Check")
    await secretary.presses("Send to 1 person")
    await secretary.sees("Reached 1 of 1")
    assert (await secretary.running.call("GET", f"/v1/quota?sender={own}&role=staff"))["used"] == 1
    await secretary.go("messages")
    await secretary.sees("trial")


async def test_a_head_sees_what_others_have_sent_and_reads_a_text_for_a_reason(person: Person, store: Store) -> None:
    head, _ = await signed_in(person, store, "admin")
    text, call = f"Private {uuid.uuid4().hex}", person.running.call
    who = f"parent-{uuid.uuid4().hex[:6]}"
    await call("POST", "/v1/users", {"id": who, "name": "Parent", "contacts": {"sms": "+79990000021"}})
    body = {
        "sender": {"id": "t-9", "name": "Teacher Nine"},
        "text": text,
        "recipients": [{"id": who}],
        "channels": ["sms"],
    }
    made = await call("POST", "/v1/deliveries", body)
    await head.visit(f"person/{who}", language="ru", width=390)
    await head.browser.wait_for("Boolean(document.querySelector('.rows .row'))")
    await head.browser.run("document.querySelector('.rows .row').scrollIntoView()")
    await head.sees("(чужой текст)")
    await head.go("messages?sender=t-9")
    await head.sees("Teacher Nine")
    await head.keeps_picture("messages-of-others-ru-390")
    await head.go(f"message/{made['id']}")
    await head.sees("Чужой текст. Чтобы прочитать")
    await head.keeps_picture("message-of-another-ru-390")
    await head.sees("Получили 1 из 1")
    await head.presses("Прочитать текст")
    await head.writes("Причина", "Жалоба")
    await head.confirms()
    await head.sees(text)
    assert not await head.browser.run(
        "[...document.querySelectorAll('button')].some((one) => one.innerText === 'Повторить')"
    )
    (action,) = (await call("GET", "/v1/actions?what=GET"))["actions"][:1]
    assert (action["name"], action["why"]) == ("Vera Secretary", "Жалоба")
    async with ClientSession(
        headers={"Authorization": f"Bearer {person.running.key}", "Ada-Reason": "move"}
    ) as session:
        for path in (f"users/{who}/export", f"threads?inbox=user:{who}"):
            assert (await session.get(f"{person.running.url.rstrip('/')}/v1/{path}")).status == 200
    await person.visit("actions", language="ru")
    await person.sees("Сообщение: прочитан текст")
    await person.sees(f"выгружены данные человека: {who}")
    await person.sees(f"прочитаны ответы людей: user:{who}")


async def test_behind_a_paused_channel_stands_that_it_pauses(person: Person) -> None:
    call = person.running.call
    await call("POST", "/v1/queue/tubes/max:pause", {"reason": "the account is checked"})
    try:
        body = {"sender": {"id": 1}, "text": "Later", "recipients": ["1=max:300001"], "channels": ["max"]}
        made = await call("POST", "/v1/deliveries", body)
        await person.visit(f"message/{made['id']}", language="ru", width=390)
        await person.sees("MAX: отправка на паузе. После неё продолжится сама.")
        await person.go("write")
        await person.sees("сейчас не отправляет")
    finally:
        await call("POST", "/v1/queue/tubes/max:resume")
    await person.go(f"message/{made['id']}")
    await person.sees("Получили 1 из 1")


async def test_behind_a_stopped_channel_nobody_is_told_to_wait(person: Person, store: Store) -> None:
    call, channels = person.running.call, KEYS["channels"].at(0)
    await Channels(store, ()).register("pigeon", ChannelFacts(10, halted="The loft is closed."))
    try:
        recipients = [{"id": 1, "name": "Anna", "contacts": {"pigeon": "loft 1"}}]
        body = {"sender": {"id": 1}, "text": "Coo", "recipients": recipients, "channels": ["pigeon"]}

        async def accepted() -> Any:
            with suppress(AssertionError):  # the API knows a new channel after a moment
                return await call("POST", "/v1/deliveries", body)

        made = await until(accepted)
        await person.visit(f"message/{made['id']}", language="ru", width=390)
        await person.sees("pigeon: отправка остановлена. Администратор видит причину в обзоре; ждать бесполезно.")
        await person.sees_no("Подождите")
        await person.keeps_picture("message-halted-ru-390")
        email = f"{uuid.uuid4().hex[:6]}@example.org"
        head = {"id": email, "name": f"Head {email[:6]}", "role": "admin", "locale": "en", "contacts": {"email": email}}
        await call("POST", "/v1/users", head)
        await Halts(store, Channels(store), "default").note("pigeon", "The loft is closed.")
        (history,) = (await call("GET", "/v1/deliveries?sender=ada&text=pigeon: sending has&limit=1"))["deliveries"]

        async def has_arrived() -> bool:
            found = await call("GET", f"/v1/deliveries/{history['id']}/recipients?q=Head%20{email[:6]}")
            return [one["received_in"] for one in found["recipients"]] == [["email"]]

        assert history["text"].startswith(
            "pigeon: sending has stopped, messages wait. The reason: The loft is closed. "
        )
        await until(has_arrived)
        await person.visit(f"message/{made['id']}", language="en")
        await person.sees("pigeon: sending has stopped; the administrator is informed. Waiting does not help.")
        await call("DELETE", f"/v1/deliveries/{made['id']}")
    finally:
        await store.command("HDEL", channels, "pigeon")
