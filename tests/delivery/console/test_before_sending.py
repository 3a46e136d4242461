"""A teacher sees what a message will be before anybody receives it, and what can be done with it until it is due."""

import uuid
from datetime import UTC, datetime

from core.admission.api_keys import ApiKeys
from core.directory import Directory
from core.redis.store import Store
from core.sessions import Sessions
from tests.delivery.console.conftest import Person

SELECTS_ALL = "document.querySelector('#text').select(), 1"
TEXT = "document.querySelector('#text').value"
DOWNLOADS = "fetch(document.querySelector('a[download]').href).then((file) => file.text())"


async def teacher_of_a_group(person: Person, store: Store) -> tuple[Person, str, str]:
    """A trainer who is signed in and owns a group of two, the id of the trainer and the title of the group."""
    call, name = person.running.call, f"Group {uuid.uuid4().hex[:6]}"
    own, boris = f"t-{name[-6:]}", f"b-{name[-6:]}"
    phone = uuid.uuid4().int % 10**6
    contacts = {"sms": f"+7998{phone:07d}"}
    await call("POST", "/v1/users", {"id": own, "name": "Anna", "role": "trainer", "contacts": contacts})
    await call("POST", "/v1/users", {"id": boris, "name": "Boris", "contacts": {"sms": f"+7997{phone:07d}"}})
    await call("POST", "/v1/users", {"id": f"c-{boris}", "name": "Carl", "contacts": {"email": "carl@example.org"}})
    await call("POST", "/v1/groups", {"id": name, "title": name, "members": [boris, f"c-{boris}"]})
    await call("PUT", f"/v1/ownerships/{own}/group/{name}")
    session = await Sessions(store, Directory(store), ApiKeys(store)).begin_as_person("default", own)
    return Person(person.browser, person.running, session.secret), own, name


async def test_a_teacher_sees_parts_quota_and_what_one_person_gets_and_sends_to_itself_first(
    person: Person, store: Store
) -> None:
    teacher, own, group = await teacher_of_a_group(person, store)
    await teacher.visit("write")
    await teacher.presses(group)
    await teacher.writes("Text", "Exam at nine")
    await teacher.browser.run(SELECTS_ALL)
    await teacher.presses("Bold")
    assert await teacher.browser.run(TEXT) == "**Exam at nine**"
    await teacher.presses("Buttons and addresses of files")
    await teacher.presses("Add a button")
    await teacher.writes("Text of the button", "Where?")
    await teacher.sees("A button needs a text and an address.")
    await teacher.writes("Address that it opens", "https://example.org/map")
    for way in ("SMS", "E-mail", "Send by the first that works"):
        await teacher.presses(way)
    await teacher.sees("2 people will be written to")
    await teacher.sees("SMS to pay for: 1 (1 for each phone), 4.20 ₽ each")
    await teacher.sees("Messages left after this one: 3 of 4")
    await teacher.presses("Check")
    await teacher.sees("Will be sent to 2 of 2")
    await teacher.writes("As one person sees it", "bor")
    await teacher.browser.wait_for("document.querySelectorAll('.shown .card').length === 1")
    assert "https://example.org/map" in await teacher.browser.text(".shown .card")
    await teacher.writes("As one person sees it", "nobody here")
    await teacher.sees("Nothing found")
    await teacher.presses("Send to myself first")
    await teacher.sees("Sent to you. Nobody else has received it.")
    (sent,) = (await teacher.running.call("GET", f"/v1/deliveries?sender={own}"))["deliveries"]
    assert (sent["counts"]["recipients"], sent["tags"]) == (1, ["test"])
    await teacher.visit("messages")
    await teacher.presses("Repeat")
    await teacher.browser.wait_for(f"document.querySelector('#text') && {TEXT} === '**Exam at nine**'")
    assert await teacher.browser.run("document.querySelector('#url-0').value") == "https://example.org/map"


async def test_a_message_is_moved_found_by_its_state_and_its_outcomes_appear_by_themselves(person: Person) -> None:
    tag, phone = uuid.uuid4().hex[:8], f"+7996{uuid.uuid4().int % 10**7:07d}"
    people = [{"id": 1, "name": "Vera", "contacts": {"sms": phone}}, {"id": 2, "name": "Gleb", "contacts": {}}]
    body = {"sender": {"id": 1}, "text": f"Later {tag}", "recipients": people, "channels": ["sms"], "tags": [tag]}
    made = await person.running.call(
        "POST", "/v1/deliveries", {**body, "deliver_at": "2030-01-01T12:00:00Z", "far": True}
    )
    await person.visit(f"messages?state=scheduled&tag={tag}")
    await person.sees("1 in all")
    await person.go(f"messages?state=finished&tag={tag}")
    await person.sees("Nothing found")
    await person.go(f"message/{made['id']}")
    await person.presses("Move")
    await person.writes("When", "")
    await person.browser.run("document.querySelector('dialog[open] input').value = '2031-02-03T04:05'")
    await person.confirms()
    await person.sees("more than a year ahead")
    await person.presses("The date is right")
    await person.sees("2031")
    moved = await person.running.call("GET", f"/v1/deliveries/{made['id']}")
    assert moved["deliver_at"].startswith("2031-02-0")
    await person.running.call("PATCH", f"/v1/deliveries/{made['id']}", {"deliver_at": f"{datetime.now(UTC):%FT%TZ}"})
    await person.sees("Reached 1 of 2")  # by the stream: nothing was pressed
    lines = (await person.browser.run(DOWNLOADS)).splitlines()
    assert len(lines) == 3
    assert sum(phone.removeprefix("+") in line for line in lines) <= 1
    assert any("Vera" in line for line in lines)


async def test_each_person_is_counted_in_the_channel_that_is_tried_first(person: Person) -> None:
    """The numbers of the channels were more than the people together, as nobody is written to twice."""
    name = f"P{uuid.uuid4().hex[:6]}"
    phone = f"+7993{uuid.uuid4().int % 10**7:07d}"
    contacts = {"vk": f"29{uuid.uuid4().int % 10**7:07d}", "sms": phone}
    await person.running.call("POST", "/v1/users", {"id": name, "name": name, "contacts": contacts})
    await person.visit("write", language="ru", width=390)
    await person.writes("Найти группу", name)
    await person.presses(name)
    await person.writes("Текст", "Завтра")
    await person.sees("SMS только тем, до кого не дойдёт иначе: не больше 1 (4,20 ₽), скорее всего 0 (0,00 ₽)")
    lines = "[...document.querySelectorAll('.summary li')].map((one) => one.innerText)"
    assert [one for one in await person.browser.run(lines) if one[-3:] == ": 1"] == ["ВКонтакте: 1"]
    await person.presses("Отправить всеми")
    await person.sees("SMS: 1")
    await person.sees("ВКонтакте: 1")
