"""The live stream of the console: what it shows to each session, and how it resumes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import ClientResponse
from msgspec import json

from core.queue import NewTask, Queue
from tests.delivery.conftest import Api, delivery_body
from tests.delivery.test_authentication import a_key

LATER = "2030-01-01T12:00:00Z"


@asynccontextmanager
async def stream(api: Api, topics: str, last: str | None = None) -> AsyncIterator[ClientResponse]:
    headers = {"Authorization": f"Bearer {api.secret}", **({"Last-Event-ID": last} if last else {})}
    async with api.session.get(f"{api.url}/v1/live?topics={topics}", headers=headers) as response:
        assert response.status == 200, await response.text()
        await response.content.readuntil(b"\n\n")  # the reader of the process runs
        yield response


async def next_event(response: ClientResponse) -> tuple[str, str, Any]:
    """The id, the name and the data of the next event."""
    while True:
        block = (await asyncio.wait_for(response.content.readuntil(b"\n\n"), 20)).decode()
        if not block.startswith(":"):
            fields = dict(line.split(": ", 1) for line in block.strip().split("\n"))
            return fields["id"], fields["event"], json.decode(fields["data"])


async def sent(api: Api, sender: int = 42) -> str:
    made = await api.call("POST", "/v1/deliveries", delivery_body(sender={"id": sender}, deliver_at=LATER, far=True))
    return str(made.json["id"])


@pytest.mark.parametrize("shards", [16])
async def test_a_change_arrives_and_a_lost_stream_resumes_behind_it_or_is_told_to_read_again(api: Api) -> None:
    first = await sent(api)
    async with stream(api, "deliveries") as kept, stream(api, "deliveries") as lost:
        await api.call("DELETE", f"/v1/deliveries/{first}")
        seen, name, data = await next_event(lost)
        assert (name, data["id"], data["state"]) == ("deliveries", first, "cancelled")
        lost.close()
        second = await sent(api)
        await api.call("DELETE", f"/v1/deliveries/{second}")
        async with stream(api, "deliveries", seen) as resumed:
            assert (await next_event(resumed))[2]["id"] == second
        async with stream(api, "deliveries", "0-7") as stranger:
            assert (await next_event(stranger))[1] == "reread"
        assert not kept.content.at_eof()


async def test_a_stream_shows_nothing_of_another_tenant(api: Api) -> None:
    theirs, mine = await a_key(api, "read", tenant="theirs"), await sent(api)
    other = await a_key(api, "send", "read", tenant="theirs")
    async with stream(theirs, "deliveries") as response:
        await api.call("DELETE", f"/v1/deliveries/{mine}")
        visible = await sent(other)
        await other.call("DELETE", f"/v1/deliveries/{visible}")
        assert (await next_event(response))[2]["id"] == visible


async def test_twenty_consoles_share_one_reader_and_the_queue_is_followed(api: Api) -> None:
    async with stream(api, "queue,jobs"):
        before = len(await api.store.redis.client_list())
    opened = [stream(api, "jobs,queue") for _ in range(20)]
    responses = [await one.__aenter__() for one in opened]
    assert len(await api.store.redis.client_list()) <= before + 1
    await Queue(api.store).put("jobs.t", NewTask("x"))
    for response in responses:
        assert {(await next_event(response))[1] for _ in range(2)} == {"jobs", "queue"}
    for one in opened:
        await one.__aexit__(None, None, None)


@pytest.mark.parametrize(
    ("scope", "query", "status", "code"),
    [
        ("read", "?topics=queue", 403, "SCOPE_MISSING"),
        ("send", "?topics=deliveries", 403, "SCOPE_MISSING"),
        ("read", "?topics=weather", 400, "WRONG_VALUE"),
        ("read", "?topics=deliveries,", 400, "WRONG_VALUE"),
        ("read", "", 400, "REQUIRED"),
    ],
)
async def test_a_topic_needs_its_scope(api: Api, scope: str, query: str, status: int, code: str) -> None:
    response = await (await a_key(api, scope)).call("GET", f"/v1/live{query}")
    assert (response.status, response.code) == (status, code)
