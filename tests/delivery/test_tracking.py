"""Tracking: the wait for reported channels, and the stream of events."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from aiohttp import ClientResponse

from couriers.sending.interface import Message, Outcome, Sent
from delivery.http.options import Options
from tests.delivery.conftest import Api, Couriers, delivery_body
from tests.support.waiting import stays, until

CONTACTS = {"telegram": "1", "vk": "2", "sms": "+79990000003"}
EVERYWHERE = delivery_body(recipients=[{"id": 1, "contacts": CONTACTS}])


async def track(api: Api, key: str, **more: Any) -> Any:
    response = await api.call("POST", "/v1/track", {"history_key": key, **more})
    assert response.status == 200, response
    return response.json


async def test_track_returns_when_touch_count_channels_have_reported(api: Api, courier: Couriers) -> None:
    made = (await api.call("POST", "/v1/deliveries", EVERYWHERE)).json
    waiting = asyncio.create_task(track(api, made["id"], touch_count=2))
    await courier("telegram")
    assert (await track(api, made["id"], touch_count=1))["timed_out"] is False
    assert not waiting.done()
    await courier("sms")
    result = await waiting
    assert result["timed_out"] is False
    states = {name: one["state"] for name, one in result["history"]["channels"].items()}
    assert states == {"telegram": "reported", "sms": "reported", "vk": "pending"}


async def test_track_counts_from_the_start_of_the_delivery(api: Api, courier: Couriers) -> None:
    await courier("telegram")
    made = (await api.call("POST", "/v1/deliveries", delivery_body(channels=["telegram"]))).json
    await track(api, made["id"])
    assert (await track(api, made["history_key"]))["timed_out"] is False


async def test_track_returns_when_all_channels_have_reported(api: Api, courier: Couriers) -> None:
    await courier("telegram")
    made = (await api.call("POST", "/v1/deliveries", delivery_body(channels=["telegram"]))).json
    assert (await track(api, made["id"], touch_count=16))["timed_out"] is False


async def test_track_reports_a_timeout_and_with_zero_only_reads(api: Api) -> None:
    made = (await api.call("POST", "/v1/deliveries", EVERYWHERE)).json
    result = await track(api, made["id"], timeout=0)
    assert (result["timed_out"], result["history"]["verdict"]) == (True, "in_progress")
    by_default = asyncio.create_task(track(api, made["id"]))
    start = time.monotonic()
    assert (await track(api, made["id"], timeout=0.2))["timed_out"] is True
    assert time.monotonic() - start > 0.15
    assert not by_default.done(), "it waits for 10 s"
    by_default.cancel()


@pytest.mark.parametrize(
    ("field", "value", "code"),
    [
        ("touch_count", 0, "OUT_OF_RANGE"),
        ("touch_count", 17, "OUT_OF_RANGE"),
        ("touch_count", 1.5, "WRONG_TYPE"),
        ("timeout", -1, "OUT_OF_RANGE"),
        ("timeout", 10.01, "OUT_OF_RANGE"),
        ("timeout", "1", "WRONG_TYPE"),
        ("timeout", None, "WRONG_TYPE"),
        ("timeout", 1e999, "JSON_NOT_A_NUMBER"),
    ],
)
async def test_track_refuses_values_out_of_range(api: Api, field: str, value: object, code: str) -> None:
    response = await api.call("POST", "/v1/track", {"history_key": "0.42.1763712000000000000", field: value})
    assert (response.status, response.code) == (400, code)


@pytest.mark.parametrize(
    "key", ["history:{0}:42:1763712000000000000", "history:{7}:42:1763712000000000000", "nonsense"]
)
async def test_track_of_an_unknown_key_is_not_found(api: Api, key: str) -> None:
    response = await api.call("POST", "/v1/track", {"history_key": key})
    assert (response.status, response.code) == (404, "HISTORY_NOT_FOUND")


async def test_track_can_start_before_the_delivery_exists(api: Api, courier: Couriers) -> None:
    await courier("telegram")
    key = (await api.call("POST", "/v1/history-keys", {"sender": {"id": 42}})).json["history_key"]
    assert await track(api, key, timeout=0) == {"history": None, "timed_out": True}
    waiting = asyncio.create_task(track(api, key))
    await api.call("POST", "/v1/deliveries", delivery_body(history_key=key, channels=["telegram"]))
    result = await waiting
    assert (result["timed_out"], result["history"]["verdict"]) == (False, "all_reached")


# the stream


@dataclass
class Event:
    id: int
    name: str
    data: Any


@asynccontextmanager
async def stream(api: Api, name: str, **headers: str) -> AsyncIterator[ClientResponse]:
    url = f"{api.url}/v1/deliveries/{name}/events"
    async with api.session.get(url, headers={"Authorization": f"Bearer {api.secret}", **headers}) as response:
        assert response.status == 200
        assert response.headers["Content-Type"] == "text/event-stream"
        yield response


async def events(response: ClientResponse) -> AsyncIterator[Event]:
    """Until the stream ends, without comments."""
    fields: dict[str, str] = {}
    async for raw in response.content:
        line = raw.decode().rstrip("\n")
        if line and not line.startswith(":"):
            name, _, value = line.partition(": ")
            fields[name] = value
        elif not line and fields:
            yield Event(int(fields["id"]), fields["event"], msgspec.json.decode(fields["data"]))
            fields = {}


async def test_the_stream_has_every_outcome_and_ends_with_the_delivery(api: Api, courier: Couriers) -> None:
    made = (await api.call("POST", "/v1/deliveries", EVERYWHERE)).json
    async with stream(api, made["id"]) as response:
        for channel in CONTACTS:
            await courier(channel)
        result = [event async for event in events(response)]
    assert [event.name for event in result[:-1]] == ["outcome"] * (len(result) - 1)
    ids = [event.id for event in result]
    assert ids == sorted(ids)
    sent = {event.data["channel"] for event in result[:-1] if event.data["outcome"]["status"] == "sent"}
    assert sent == set(CONTACTS)
    assert (result[-1].name, result[-1].data["state"]) == ("finished", "finished")


async def test_the_stream_has_the_new_time_of_a_rescheduled_delivery(api: Api) -> None:
    made = (
        await api.call("POST", "/v1/deliveries", {**EVERYWHERE, "deliver_at": "2029-11-21T17:00:00Z", "far": True})
    ).json
    where = f"/v1/deliveries/{made['id']}"
    async with stream(api, made["id"]) as response:
        await api.call("PATCH", where, {"deliver_at": "2029-11-21T18:00:00Z", "far": True})
        moved = await anext(events(response))
    assert (moved.name, moved.data["state"], moved.data["deliver_at"]) == ("state", "scheduled", "2029-11-21T18:00:00Z")
    assert moved.id == moved.data["version"] == (await api.call("GET", where)).json["version"]
    async with stream(api, made["id"], **{"Last-Event-ID": str(moved.id - 1)}) as response:
        assert await anext(events(response)) == moved


async def test_a_lost_stream_resumes_after_the_last_event_id(api: Api, courier: Couriers) -> None:
    for channel in CONTACTS:
        await courier(channel)
    made = (await api.call("POST", "/v1/deliveries", EVERYWHERE)).json
    async with stream(api, made["id"]) as response:
        all_events = [event async for event in events(response)]
    seen = all_events[0].id
    async with stream(api, made["id"], **{"Last-Event-ID": str(seen)}) as response:
        rest = [event async for event in events(response)]
    assert rest
    assert all(event.id > seen for event in rest[:-1])
    assert rest[-1].name == "finished"
    async with api.session.get(
        f"{api.url}/v1/deliveries/{made['id']}/events?after={seen}", headers={"Authorization": f"Bearer {api.secret}"}
    ) as response:
        assert [event async for event in events(response)] == rest


@pytest.mark.parametrize("seen", ["x", "-1", "1.5", "9" * 30, "²"])
async def test_a_malformed_last_event_id_is_refused(api: Api, seen: str) -> None:
    made = (await api.call("POST", "/v1/deliveries", delivery_body())).json
    response = await api.call("GET", f"/v1/deliveries/{made['id']}/events", headers={"Last-Event-ID": seen})
    assert (response.status, response.code) == (400, "LAST_EVENT_ID_MALFORMED")


async def test_a_stream_can_start_before_the_delivery_exists(api: Api, courier: Couriers) -> None:
    await courier("telegram")
    key = (await api.call("POST", "/v1/history-keys", {"sender": {"id": 42}})).json
    async with stream(api, key["id"]) as response:
        body = delivery_body(history_key=key["history_key"], channels=["telegram"])
        assert (await api.call("POST", "/v1/deliveries", body)).status == 202
        result = [event async for event in events(response)]
    assert result[-1].name == "finished"
    assert result[-2].data["outcome"]["status"] == "sent"


class TestSilence:
    @pytest.fixture
    def options(self) -> Options:
        return Options(heartbeat=timedelta(seconds=0.02))

    async def test_a_silent_stream_has_heartbeats(self, api: Api) -> None:
        made = (await api.call("POST", "/v1/deliveries", delivery_body())).json
        async with stream(api, made["id"]) as response:
            assert await response.content.readuntil(b"\n\n") == b": still here\n\n"
            assert await response.content.readuntil(b"\n\n") == b": still here\n\n"


async def test_streams_and_trackers_end_at_once_at_shutdown(api: Api) -> None:
    made = (await api.call("POST", "/v1/deliveries", EVERYWHERE)).json
    async with stream(api, made["id"]) as response:
        waiting = asyncio.create_task(api.call("POST", "/v1/track", {"history_key": made["id"]}))

        async def both_wait() -> bool:
            figures = (await api.call("GET", "/metrics")).body
            return b"ada_http_streams 1.0" in figures and b"ada_http_requests_in_progress 3.0" in figures

        await until(both_wait)
        await api.close()
        assert [event async for event in events(response)] == []
        assert (await waiting).code == "SHUTTING_DOWN"


async def test_shutdown_during_a_stream_logs_no_warning(api: Api, caplog: pytest.LogCaptureFixture) -> None:
    """Regression: the event reader, while it was being stopped, saw the closed connection and logged it as lost."""
    made = (await api.call("POST", "/v1/deliveries", delivery_body())).json
    async with stream(api, made["id"]) as response:
        await until(lambda: one_reads(api))
        await api.close()
        await api.store.close()
        assert [event async for event in events(response)] == []
    await stays(lambda: not [record.message for record in caplog.records if record.levelname == "WARNING"])


async def one_reads(api: Api) -> bool:
    return any(client["cmd"].startswith("xread") for client in await api.store.redis.client_list())


async def test_a_slow_courier_delays_no_other_delivery(api: Api, courier: Couriers) -> None:
    held = asyncio.Event()

    async def answer(message: Message) -> Outcome:
        if message.address == "@slow":
            await held.wait()
        return Sent()

    await courier("telegram", answer)
    slow = delivery_body(recipients=[{"id": 1, "contacts": {"telegram": "@slow"}}], channels=["telegram"])
    quick = delivery_body(recipients=[{"id": 2, "contacts": {"telegram": "@quick"}}], channels=["telegram"])
    first = (await api.call("POST", "/v1/deliveries", slow)).json["id"]
    second = (await api.call("POST", "/v1/deliveries", quick)).json["id"]
    try:
        assert (await track(api, second))["history"]["verdict"] == "all_reached"
        assert (await track(api, first, timeout=0))["timed_out"] is True
    finally:
        held.set()
