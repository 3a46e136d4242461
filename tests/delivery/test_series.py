"""Repeated deliveries over HTTP: made, listed, changed, stopped; each moment sends once (D-49)."""

import asyncio
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from cli.client.http_client import HttpClient
from cli.commands.messages.deliveries import declare_series, run_series
from core.model.clock import from_ms, to_ms
from core.orders.series import Series, SeriesSender
from core.redis.store import Store
from delivery.api.deliveries.series import order_of
from delivery.http.context import ApiServices
from delivery.http.options import Options
from tests.delivery.conftest import Api, Couriers, delivery_body
from tests.support.paths import ROOT
from tests.support.servers import Server
from tests.support.waiting import until

MINUTELY = {"when": "* * * * *", "zone": "UTC"}


def new_series(**more: Any) -> dict[str, Any]:
    return {"message": delivery_body(), "when": "every Monday 8:00", "zone": "Europe/Moscow", **more}


async def made(api: Api, **more: Any) -> dict[str, Any]:
    response = await api.call("POST", "/v1/series", new_series(**more))
    assert response.status == 201, response
    assert response.headers["Location"] == f"/v1/series/{response.json['id']}"
    found: dict[str, Any] = response.json
    return found


async def deliveries_of(api: Api, series: dict[str, Any]) -> list[dict[str, Any]]:
    page = await api.call("GET", f"/v1/deliveries?tag={series['tag']}")
    found: list[dict[str, Any]] = page.json["deliveries"]
    return found


def pass_to(store: Store, moment: str) -> None:
    """Put the clock of the server to a moment."""
    ahead = datetime.fromisoformat(moment) - datetime.now(UTC)
    store.clock_offset_ms = int(ahead / timedelta(milliseconds=1)) + 50


@pytest.fixture
async def sender(services: ApiServices, store: Store) -> AsyncIterator[SeriesSender]:
    """Two workers of one process, as two processes have them."""
    core = services.core
    one = SeriesSender(core.client, store, core.sending, core.directory, partial(order_of, options=Options()))
    await one.open()
    workers = [one.worker() for _ in range(2)]
    running = [asyncio.create_task(worker.run()) for worker in workers]
    yield one
    for worker in workers:
        worker.stop()
    await asyncio.gather(*running)


@pytest.mark.parametrize("shards", [1, 2])
async def test_each_moment_makes_one_delivery_that_is_linked_to_the_series(
    api: Api, sender: SeriesSender, courier: Couriers, store: Store
) -> None:
    await courier("telegram")
    await courier("sms")
    series = await made(api, **MINUTELY)
    for number in (1, 2, 3):
        before = (await api.call("GET", f"/v1/series/{series['id']}")).json
        pass_to(store, before["next"][0])

        async def is_sent(wanted: int = number) -> bool:
            return bool((await api.call("GET", f"/v1/series/{series['id']}")).json["sent"] == wanted)

        await until(is_sent)
        after = (await api.call("GET", f"/v1/series/{series['id']}")).json
        assert (after["last"], after["next"][:2]) == (before["next"][0], before["next"][1:]), after
        sent = await deliveries_of(api, series)
        assert len(sent) == number
        assert after["last_delivery"] == sent[0]["id"]
        assert after["problem"] is None


async def test_the_verb_shows_one_series(api: Api, capsys: pytest.CaptureFixture[str]) -> None:
    one, parser = await made(api), ArgumentParser()
    declare_series(parser)
    assert await run_series(HttpClient(api.url, api.secret), parser.parse_args([one["id"]], Namespace(json=False))) == 0
    assert one["id"] in capsys.readouterr().out


async def test_a_series_is_listed_changed_stopped_and_removed(api: Api, sender: SeriesSender, store: Store) -> None:
    series = await made(api, when="Каждый понедельник в 8:00")
    assert (series["cron"], series["state"], len(series["next"])) == ("0 8 * * 1", "active", 3)
    monday = datetime.fromisoformat(series["next"][0])
    assert (monday.weekday(), monday.hour) == (0, 5), "8:00 in Moscow"
    where = f"/v1/series/{series['id']}"
    assert [one["id"] for one in (await api.call("GET", "/v1/series")).json["series"]] == [series["id"]]
    changed = (await api.call("PATCH", where, {"when": "по будням в 9:00", "zone": "UTC"})).json
    assert (changed["cron"], datetime.fromisoformat(changed["next"][0]).hour) == ("0 9 * * 1-5", 9)
    body = {"message": delivery_body(text="Other")}
    assert (await api.call("PATCH", where, body)).json["next"] == changed["next"], "only the text has changed"
    stopped = (await api.call("PATCH", where, {"state": "stopped"})).json
    assert (stopped["state"], stopped["next"]) == ("stopped", [])
    other = await made(api, when="по будням в 9:00", zone="UTC")
    pass_to(store, changed["next"][0])

    async def other_is_sent() -> bool:
        return bool((await api.call("GET", f"/v1/series/{other['id']}")).json["sent"])

    await until(other_is_sent)
    assert await deliveries_of(api, series) == []
    assert (await api.call("PATCH", where, {"when": "daily at 7:00"})).json["state"] == "stopped"
    assert (await api.call("PATCH", where, {"state": "active"})).json["state"] == "active"
    assert (await api.call("DELETE", where)).status == 204
    assert (await api.call("GET", where)).code == "SERIES_NOT_FOUND"
    assert [one["id"] for one in (await api.call("GET", "/v1/series")).json["series"]] == [other["id"]]


async def test_a_refusal_at_a_moment_is_named_and_the_series_goes_on(
    api: Api, sender: SeriesSender, store: Store
) -> None:
    await api.call("POST", "/v1/users", {"id": 7, "name": "Anna", "contacts": {"sms": "+79990000007"}})
    await api.call("POST", "/v1/groups", {"id": "A", "title": "A", "members": [7]})
    series = await made(api, message=delivery_body(recipients=[{"group": "A"}]), **MINUTELY)
    await api.call("DELETE", "/v1/groups/A")
    pass_to(store, series["next"][0])

    async def problem() -> Any:
        return (await api.call("GET", f"/v1/series/{series['id']}")).json["problem"]

    assert (await until(problem))["code"] == "GROUP_NOT_FOUND"
    await api.call("POST", "/v1/groups", {"id": "A", "title": "A", "members": [7]})
    pass_to(store, series["next"][1])

    async def is_sent() -> bool:
        return bool((await api.call("GET", f"/v1/series/{series['id']}")).json["sent"] == 1)

    await until(is_sent)
    assert await problem() is None


async def test_moments_that_no_process_saw_are_made_up_for_by_one_within_a_day(
    api: Api, store: Store, services: ApiServices
) -> None:
    core = services.core
    series = await made(api, when="*/10 * * * *", zone="UTC")
    old = await made(api, when="0 * * * *", zone="UTC")
    first = datetime.fromisoformat(series["next"][0])
    pass_to(store, (first + timedelta(minutes=35)).isoformat())
    one = SeriesSender(core.client, store, core.sending, core.directory, partial(order_of, options=Options()))
    await one.open()
    worker = one.worker()
    running = asyncio.create_task(worker.run())

    async def noted() -> bool:
        return (await api.call("GET", f"/v1/series/{series['id']}")).json["last"] is not None

    await until(noted)
    found = (await api.call("GET", f"/v1/series/{series['id']}")).json
    assert (found["sent"], found["missed"], len(await deliveries_of(api, series))) == (1, 3, 1)
    worker.stop()
    await running
    before = (await api.call("GET", f"/v1/series/{old['id']}")).json
    pass_to(store, (datetime.fromisoformat(before["next"][0]) + timedelta(hours=25, minutes=1)).isoformat())
    await one.open()
    worker = one.worker()
    running = asyncio.create_task(worker.run())

    async def problem() -> Any:
        return (await api.call("GET", f"/v1/series/{old['id']}")).json["problem"]

    assert (await until(problem))["code"] == "MOMENT_MISSED"
    after = (await api.call("GET", f"/v1/series/{old['id']}")).json
    assert (after["sent"], after["missed"]) == (before["sent"], before["missed"] + 26)
    worker.stop()
    await running


REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("SCHEDULE_MALFORMED", {"when": "now and then"}),
    ("CRON_MALFORMED", {"when": "61 * * * *"}),
    ("CRON_MALFORMED", {"when": "0 8 30 2 *"}),
    ("ZONE_UNKNOWN", {"zone": "Mars/Olympus"}),
    ("ZONE_UNKNOWN", {"zone": "../etc/passwd"}),
    ("SERIES_WITHOUT_MOMENT", {"until": "2020-01-01T00:00:00Z"}),
    ("NOT_FOR_SERIES", {"message": delivery_body(deliver_at="2030-01-01T00:00:00Z")}),
    ("NOT_FOR_SERIES", {"message": delivery_body(expires_at="2030-01-01T00:00:00Z")}),
    ("NOT_FOR_SERIES", {"message": delivery_body(recipients=[{"follow_up": "0.1.1763712000000000000"}])}),
    ("NOT_FOR_SERIES", {"message": delivery_body(recipients=[{"table": "0" * 32}])}),
    ("UNKNOWN_CHANNEL", {"message": delivery_body(channels=["pigeon"])}),
    ("UNKNOWN_FIELD", {"color": "red"}),
]


async def test_a_wrong_series_is_refused_by_its_code(api: Api) -> None:
    before = await api.keys()
    for code, body in REFUSED:
        for path in ("/v1/series", "/v1/series/preview"):
            refused = await api.call("POST", path, new_series(**body))
            codes = {refused.code, *(error["code"] for error in refused.json.get("errors", ()))}
            assert code in codes, (code, refused)
    assert await api.keys() == before


async def test_a_preview_has_the_first_moments_and_writes_nothing(api: Api) -> None:
    before = await api.keys()
    seen = (await api.call("POST", "/v1/series/preview", new_series())).json
    assert await api.keys() == before
    kept = await made(api)
    assert {name: kept[name] for name in seen} == seen
    assert len(seen["next"]) == 3


@pytest.mark.parametrize("when", ["before", "behind"])
async def test_a_killed_process_sends_nothing_twice_and_loses_no_moment(
    api: Api, store: Store, server: Server, when: str
) -> None:
    series = await made(api, when="0 * * * *", zone="UTC")
    pass_to(store, series["next"][0])
    command = [sys.executable, "-m", "tests.core.orders.series_process", server.url, "1"]
    killed = await asyncio.create_subprocess_exec(*command, str(store.clock_offset_ms), when, cwd=ROOT)
    assert await killed.wait() == -9
    assert len(await deliveries_of(api, series)) == (when == "behind")
    # The lease of the killed one has ended.
    later = str(store.clock_offset_ms + 16_000)
    healthy = await asyncio.create_subprocess_exec(*command, later, "never", cwd=ROOT)

    async def is_noted() -> bool:
        return (await api.call("GET", f"/v1/series/{series['id']}")).json["last"] is not None

    await until(is_noted)
    healthy.kill()
    await healthy.wait()
    assert len(await deliveries_of(api, series)) == 1
    noted = (await api.call("GET", f"/v1/series/{series['id']}")).json
    assert (noted["last"], noted["sent"], noted["problem"]) == (series["next"][0], 1, None)


@pytest.mark.parametrize(("ends", "days"), [(-1, [1, 2]), (0, [1, 2, 3]), (1, [1, 2, 3])])
def test_a_moment_at_the_very_end_of_a_series_is_its_last(ends: int, days: Sequence[int]) -> None:
    """`ends`: ms after the third moment."""
    until = to_ms(datetime(2026, 12, 3, 9, tzinfo=UTC)) + ends
    series = Series(tenant="t", sender=1, message={}, words="", cron="0 9 * * *", zone="UTC", until=until)
    begun = series.begun(datetime(2026, 11, 30, 12, tzinfo=UTC))
    assert [from_ms(at) for at in begun.moments(9)] == [datetime(2026, 12, day, 9, tzinfo=UTC) for day in days]


def test_each_day_has_its_moment_over_the_change_of_the_clock() -> None:
    """In Berlin 2:30 comes twice on 2026-10-25, and never on 2027-03-28."""
    series = Series(tenant="t", sender=1, message={}, words="", cron="30 2 * * *", zone="Europe/Berlin")
    autumn = series.begun(datetime(2026, 10, 24, 12, tzinfo=UTC)).moments(3)
    assert [f"{from_ms(at):%dT%H:%M}" for at in autumn] == ["25T00:30", "26T01:30", "27T01:30"]
    spring = series.begun(datetime(2027, 3, 27, 12, tzinfo=UTC)).moments(3)
    assert [f"{from_ms(at):%dT%H:%M}" for at in spring] == ["28T01:00", "29T00:30", "30T00:30"]
    keys = {series.delivery_key(0, at) for at in (*autumn, *spring)}
    assert len(keys) == 6
    assert series.delivery_key(0, to_ms(datetime(2026, 10, 25, 0, 30, tzinfo=UTC))) in keys
