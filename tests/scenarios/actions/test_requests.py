"""Requests of people, and promo codes."""

from datetime import datetime, timedelta

import pytest

from core.redis.store import Store
from scenarios.actions.requests import RequestAttributes
from scenarios.stores.requests import Requests
from tests.sandbox.bot_api_clients import ANNA
from tests.scenarios.actions.conftest import PRIVATE, TENANT, Bench

pytestmark = pytest.mark.parametrize("shards", [16])

DAY_MS = 24 * 3600 * 1000
ANNA_WRITES = {
    **PRIVATE,
    "event_text": "Потерял <пропуск>",
    "username": "anna",
    "first_name": "Анна",
    "last_name": "Ким",
}
PHOTO = {"type": "photo", "file_id": "AgAC"}
LIST = {"type": "request_management", "operation": "list"}


async def ask(bench: Bench, text: str, name: str = "feedback", **more: str) -> int:
    """Store a request as another event; return its id."""
    event = {**ANNA_WRITES, "event_text": text}
    results = await bench.results({"type": "request", "request_name": name, **more}, event, run=f"{name} {text}")
    return int(results["request_id"])


async def listed(bench: Bench, **fields: object) -> list[str]:
    """The texts of the requests that an action lists, in its order."""
    text = (await bench.results({**LIST, **fields}, PRIVATE))["text"]
    return [paragraph.split("\n")[-1 if paragraph == "…" else 2] for paragraph in text.split("\n\n")]


async def test_a_request_stores_person_name_text_attachments_and_note(bench: Bench, store: Store) -> None:
    event = {**ANNA_WRITES, "attachments": [PHOTO]}
    fields = {"type": "request", "request_name": "bug", "request_info": "от {first_name}", "placeholder": True}
    ending = await bench.play(fields, event)
    assert ending.returned.results["request_text"] == "Потерял <пропуск>"
    assert "request_text" in ending.returned.from_person
    found = await Requests(store, TENANT).find(ending.returned.results["request_id"])
    assert found is not None
    stored = (found.name, found.user_id, found.username, found.text, found.attachments, found.info, found.channel)
    assert stored == ("bug", "100001", "anna", "Потерял <пропуск>", [PHOTO], "от Анна", "telegram-bot")


async def test_the_author_may_give_the_text_and_the_attachments(bench: Bench, store: Store) -> None:
    fields = {"type": "request", "event_text": "Другой", "attachments": []}
    results = await bench.results(fields, {**ANNA_WRITES, "attachments": [PHOTO]})
    found = await Requests(store, TENANT).find(results["request_id"])
    assert found is not None
    assert (found.name, found.text, list(found.attachments)) == ("request", "Другой", [])


async def test_a_repeated_step_stores_one_request(bench: Bench, store: Store) -> None:
    first = await bench.results({"type": "request"}, ANNA_WRITES, run="a")
    assert await bench.results({"type": "request"}, ANNA_WRITES, run="a") == first
    other = await bench.results({"type": "request"}, ANNA_WRITES, run="b")
    assert other["request_id"] == first["request_id"] + 1
    assert [one.id for one in await Requests(store, TENANT).newest()] == [other["request_id"], first["request_id"]]


async def test_requests_are_listed_by_name_and_number_newest_first(bench: Bench) -> None:
    for text, name in [("1", "a"), ("2", "b"), ("3", "a"), ("4", "c")]:
        await ask(bench, text, name)
    assert await listed(bench) == ["4", "3", "2", "1"]
    assert await listed(bench, request_name="a") == ["3", "1"]
    assert await listed(bench, request_name=["c", "a"]) == ["4", "3", "1"]
    assert await listed(bench, request_name="c, b", limit=1) == ["4", "…"]
    assert await listed(bench, limit="2") == ["4", "3", "…"]
    assert await listed(bench, limit=4) == ["4", "3", "2", "1"]


async def test_more_than_ten_requests_are_listed_newest_first(bench: Bench) -> None:
    """Sorted as text, the tenth came behind the ninth."""
    texts = [f"{number}" for number in range(1, 13)]
    for text in texts:
        await ask(bench, text, "even" if int(text) % 2 == 0 else "odd")
    assert await listed(bench) == texts[::-1]
    assert await listed(bench, request_name="even, odd", limit=3) == ["12", "11", "10", "…"]
    assert await listed(bench, request_name="even") == ["12", "10", "8", "6", "4", "2"]


async def test_requests_are_listed_since_a_date_and_by_age(bench: Bench, store: Store) -> None:
    store.clock_offset_ms = -3 * DAY_MS
    await ask(bench, "old")
    store.clock_offset_ms = -DAY_MS
    await ask(bench, "yesterday")
    store.clock_offset_ms = 0
    await ask(bench, "new")
    assert await listed(bench, unexpired="2d") == ["new", "yesterday"]
    assert await listed(bench, unexpired="1d 1h") == ["new", "yesterday"]
    assert await listed(bench, unexpired="23h") == ["new"]
    assert await listed(bench, time_before="23h") == ["new"]
    assert await listed(bench, time_before="23h", unexpired="2d") == ["new"]
    date = (datetime.now(bench.services.timezone) - timedelta(days=2)).date().isoformat()
    assert await listed(bench, from_date=date) == ["new", "yesterday"]
    assert await listed(bench, from_date=date, unexpired="23h") == ["new"]
    assert await listed(bench, from_date="2020-01-01") == ["new", "yesterday", "old"]
    assert "is not a duration" in await bench.error({**LIST, "unexpired": "soon"}, PRIVATE)
    assert "is not a date" in await bench.error({**LIST, "from_date": "soon"}, PRIVATE)


async def test_an_empty_list_returns_the_text_that_the_author_chose(bench: Bench) -> None:
    for fields, text in (LIST, "—"), ({**LIST, "empty_text": "Нет обращений"}, "Нет обращений"):
        assert await bench.results(fields, PRIVATE) == {"text": text, "response_text": text}
    assert await bench.results({**LIST, "empty_text": ""}, PRIVATE) == {}


@pytest.mark.parametrize("written", ["{}", " #{} ", "№ {}"])
async def test_a_request_is_shown_by_the_id_that_the_person_writes(bench: Bench, written: str) -> None:
    number = await ask(bench, "<b>Где</b> ключ?", request_info="первый этаж")
    await ask(bench, "другое")
    event = {**PRIVATE, "event_text": written.format(number)}
    text = (await bench.results({"type": "request_management", "operation": "details"}, event))["text"]
    assert f"#{number}" in text
    assert "&lt;b&gt;Где&lt;/b&gt; ключ?" in text
    assert "первый этаж" in text
    assert "Анна Ким (@anna)" in text
    assert "другое" not in text


@pytest.mark.parametrize("written", ["999", "ключ", "", "-1"])
async def test_a_request_that_does_not_exist_fails(bench: Bench, written: str) -> None:
    event = {**PRIVATE, "event_text": written}
    assert "there is no request" in await bench.error({"type": "request_management", "operation": "details"}, event)


async def test_an_unknown_operation_fails(bench: Bench) -> None:
    assert "'drop' is none of list, details" in await bench.error({**LIST, "operation": "drop"}, PRIVATE)


async def test_a_request_is_dropped_after_400_days(bench: Bench, store: Store) -> None:
    requests = Requests(store, TENANT)
    store.clock_offset_ms = -401 * DAY_MS
    await requests.store("old", RequestAttributes(event_text="old", user_id=str(ANNA)).request("vk"))
    store.clock_offset_ms = 0
    new = await requests.store("new", RequestAttributes(event_text="new", user_id=str(ANNA)).request("vk"))
    assert [one.id for one in await requests.newest()] == [new]
