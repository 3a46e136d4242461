"""The calendar of a person: deadlines of its questions, and its answers, by a key that is good for nothing else."""

from collections.abc import Sequence
from datetime import timedelta
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.admission.api_keys import ApiKeys
from core.deliveries.of_person import DeliveriesOfPerson
from core.directory import Directory
from core.model.people import User
from core.sessions import Sessions
from delivery.api.calendar_feed import MOST_EVENTS, escaped, folded_line, questions_of
from tests.delivery.conftest import Api, ApiResponse, Couriers, delivery_body
from tests.delivery.test_deliveries import finished
from tests.delivery.test_people_signed_in import as_person, people

__all__ = ["people"]

UNTIL = "2030-05-04T10:00:00Z"
CLUBS = [{"key": "chess", "text": "Chess, room 5"}, {"key": "choir", "text": "Choir", "places": 1}]
TEXT = "Which club?\r\nEND:VEVENT; until Friday"


async def calendar(api: Api, secret: str) -> ApiResponse:
    return await api.call("GET", f"/v1/calendar/{secret}.ics", headers={"Authorization": ""})


def lines_of(response: ApiResponse) -> list[str]:
    """The lines of a calendar, unfolded."""
    assert response.status == 200, response.body
    assert response.headers["Content-Type"].startswith("text/calendar")
    text = response.body.decode()
    assert text.endswith("END:VCALENDAR\r\n")
    return text.replace("\r\n ", "").split("\r\n")


def summaries(lines: Sequence[str]) -> list[str]:
    return [line.removeprefix("SUMMARY:") for line in lines if line.startswith("SUMMARY:")]


def sequence(lines: Sequence[str]) -> int:
    """Of the first event."""
    return int(next(line for line in lines if line.startswith("SEQUENCE:")).removeprefix("SEQUENCE:"))


async def key_of(api: Api, person: int) -> tuple[str, str]:
    """The secret of a new key for the calendar of this person, and its id."""
    browser = await as_person(api, person)
    made = await browser.call("POST", "/v1/me/keys", {"name": "phone", "scopes": ["calendar"], "days": 300})
    assert made.status == 201, made.body
    return made.json["secret"], made.json["key"]["id"]


async def asks(api: Api, answer: dict[str, object], **more: object) -> str:
    """The address of a delivery that asks the people 4 and 5."""
    body = delivery_body(text=TEXT, recipients=[{"id": 4}, {"id": 5}], channels=["sms"], answer=answer, **more)
    made = await api.call("POST", "/v1/deliveries", body)
    assert made.status == 202, made.body
    return str(made.headers["Location"])


@pytest.mark.usefixtures("people")
async def test_the_calendar_has_the_deadline_and_then_the_answer_of_its_person_alone(
    api: Api, courier: Couriers
) -> None:
    await courier("sms")
    for person in (4, 5):
        assert (await api.call("PATCH", f"/v1/users/{person}", {"locale": "ru"})).status == 200
    secret, _ = await key_of(api, 4)
    where = await asks(api, {"kind": "choice", "options": CLUBS, "until": UNTIL})
    await finished(api, where)
    await asks(api, {"kind": "confirm", "until": UNTIL}, deliver_at="2029-01-01T10:00:00Z", far=True)
    await finished(api, await asks(api, {"kind": "confirm"}))
    lines = lines_of(await calendar(api, secret))
    assert lines.count("BEGIN:VEVENT") == lines.count("END:VEVENT") == 2, "what has an end, and was sent; its own end"
    assert "DTSTART:20300504T100000Z" in lines
    assert summaries(lines) == [
        "Ответить до этого времени: Which club? END:VEVENT\\; until Friday",
        "Этот календарь закончится: создайте новый адрес на странице со своим именем",
    ]
    before = sequence(lines)
    for person, key in ((5, "choir"), (4, "choir")):
        answered = await api.call("POST", f"{where}/answers", {"recipient": person, "value": key})
        assert answered.status < 300, answered.body
    lines = lines_of(await calendar(api, secret))
    assert summaries(lines)[0].endswith("вы в листе ожидания: Choir")
    assert sequence(lines) > before, "or a program keeps what it has"
    other, _ = await key_of(api, 5)
    assert summaries(lines_of(await calendar(api, other)))[0].endswith("ваш ответ: Choir")
    stranger, _ = await key_of(api, 1)
    assert len(summaries(lines_of(await calendar(api, stranger)))) == 1, "its own end"


@pytest.mark.usefixtures("people")
async def test_the_event_of_a_question_that_is_closed_early_is_cancelled_unless_it_was_answered(
    api: Api, courier: Couriers
) -> None:
    await courier("sms")
    secret, _ = await key_of(api, 4)
    where = await asks(api, {"kind": "confirm", "until": UNTIL})
    await finished(api, where)
    assert "STATUS:CANCELLED" not in lines_of(await calendar(api, secret))
    assert (await api.call("POST", f"{where}/answers:close")).status < 300
    lines = lines_of(await calendar(api, secret))
    assert lines.index("STATUS:CANCELLED") < lines.index("END:VEVENT")


async def test_a_question_is_found_behind_many_messages_without_one() -> None:
    class Pages:
        async def page(self, tenant: str, person: str, cursor: str | None, limit: int, sees: object) -> object:
            page = int(cursor or 0)
            history = SimpleNamespace(question=SimpleNamespace(until=int(page == 2)))
            return [SimpleNamespace(history=history)] * limit, str(page + 1)

    found = await questions_of(cast(DeliveriesOfPerson, Pages()), "default", User(4))
    assert len(found) == MOST_EVENTS


@pytest.mark.usefixtures("people")
async def test_a_key_of_a_calendar_is_good_for_nothing_else_and_ends_with_its_person(api: Api) -> None:
    secret, key_id = await key_of(api, 3)
    assert (await api.as_key(secret).call("GET", "/v1/me")).code == "KEY_UNKNOWN"
    browser = await as_person(api, 3)
    sending = {"name": "both", "scopes": ["calendar", "read"], "days": 30}
    assert (await browser.call("POST", "/v1/me/keys", sending)).code == "CALENDAR_ALONE"
    reading = await browser.call("POST", "/v1/me/keys", {**sending, "scopes": ["read"]})
    for wrong in (reading.json["secret"], browser.secret, "x", f"{secret}x"):
        assert (await calendar(api, wrong)).code == "CALENDAR_NOT_FOUND"
    assert (await calendar(api, secret)).status == 200
    sessions = Sessions(api.store, Directory(api.store), ApiKeys(api.store))
    listed = {key.id: (tenant, person, key.scopes) async for tenant, person, key in sessions.personal_keys()}
    assert listed[key_id] == ("default", "3", ["calendar"])
    assert len(listed) == 2
    assert (await browser.call("DELETE", f"/v1/me/keys/{key_id}")).status == 204
    assert (await calendar(api, secret)).code == "CALENDAR_NOT_FOUND"
    secret, _ = await key_of(api, 4)
    await api.call("PATCH", "/v1/users/4", {"blocked": True})
    assert (await calendar(api, secret)).code == "CALENDAR_NOT_FOUND"


@pytest.mark.usefixtures("people")
async def test_a_calendar_that_is_read_without_end_is_slowed_down(api: Api) -> None:
    secret, _ = await key_of(api, 4)
    codes = [(await calendar(api, secret)).status for _ in range(22)]
    assert (codes[0], codes[-1]) == (200, 429)
    assert timedelta(0) < timedelta(seconds=int((await calendar(api, secret)).headers["Retry-After"]))


@given(st.text())
def test_no_text_leaves_its_line(text: str) -> None:
    line = f"SUMMARY:{escaped(text)}"
    folded = list(folded_line(line))
    assert not any(one in piece for piece in folded for one in "\r\n\x0b\x85\u2028")
    assert all(len(piece.encode()) <= 75 for piece in folded)
    assert folded[0] + "".join(piece.removeprefix(" ") for piece in folded[1:]) == line
