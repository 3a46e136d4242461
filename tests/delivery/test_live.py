"""The live stream of the console: what it shows to each session, and how it resumes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import ClientResponse
from msgspec import json

from core.queue import NewTask, Queue
from core.redis.keys import KEYS
from core.threads.threads import Correspondent, Inbox, ReplyRoute, ThreadMessage
from tests.delivery.conftest import Api, delivery_body
from tests.delivery.test_authentication import a_key
from tests.delivery.test_people_signed_in import as_person, people
from tests.delivery.test_sessions import Browser
from tests.delivery.test_threads import OFFICE, written

__all__ = ["people"]

LATER = "2030-01-01T12:00:00Z"


@asynccontextmanager
async def stream(
    api: Api, topics: str, last: str | None = None, browser: Browser | None = None
) -> AsyncIterator[ClientResponse]:
    author = {"Cookie": f"ada_session={browser.secret}"} if browser else {"Authorization": f"Bearer {api.secret}"}
    headers = {**author, **({"Last-Event-ID": last} if last else {})}
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


@pytest.mark.usefixtures("people")
@pytest.mark.parametrize("shards", [16])
async def test_a_message_of_a_thread_is_an_event_for_its_readers_and_for_nobody_else(api: Api) -> None:
    theirs, threads = await a_key(api, "manage", tenant="theirs"), api.services.core.threads
    reader, other = await as_person(api, 1), await as_person(api, 2)
    async with (
        stream(api, "reply,deliveries") as program,
        stream(api, "reply", browser=reader) as readers,
        stream(api, "reply", browser=other) as others,
        stream(theirs, "reply") as strangers,
    ):
        added = await written(api)
        event = {"thread": added.thread, "inbox": "user:1", "number": 1, "side": "person"}
        assert (await next_event(program))[1:] == ("reply", event)
        seen, name, data = await next_event(readers)
        assert (name, data) == ("reply", event)
        await written(api)  # a repeat
        answer = ThreadMessage(0, "staff", 0, 1, "Good day")
        await threads.add_of_staff(await threads.find("default", added.thread), "a1", answer)
        assert (await next_event(readers))[2] == {**event, "number": 2, "side": "staff"}
        async with stream(api, "reply", seen, reader) as resumed:
            assert (await next_event(resumed))[2]["number"] == 2
        mine = await written(api, inbox=Inbox("user", "2"))
        assert (await next_event(others))[2]["thread"] == mine.thread
        way, message = ReplyRoute("sms", "+79991112204"), ThreadMessage(0, "person", 0, 4, "Hi", "sms")
        foreign = await threads.add_of_person("theirs", Inbox("user", "1"), Correspondent(4), way, "", "e1", message)
        assert (await next_event(strangers))[2]["thread"] == foreign.thread
        await api.call("PUT", "/v1/groups/mine/members/2")
        await written(api, inbox=OFFICE)
        assert (await next_event(others))[2]["inbox"] == str(OFFICE)
        await written(api, event="e2")
        assert (await next_event(readers))[2] == {**event, "number": 3}


async def test_more_messages_than_are_kept_make_a_console_read_again(api: Api) -> None:
    async with stream(api, "reply") as response:
        entry = ["tenant", "default", "inbox", "user:1", "thread", "0.1", "number", 1, "side", "person"]
        async with api.store.redis.pipeline(transaction=True) as commands:
            for _ in range(1000):
                commands.execute_command("XADD", KEYS["thread_events"].at(0), "*", *entry)
            await commands.execute()
        assert (await next_event(response))[1] == "reread"


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
        ("read", "?topics=reply", 403, "SCOPE_MISSING"),
        ("read", "?topics=weather", 400, "WRONG_VALUE"),
        ("read", "?topics=deliveries,", 400, "WRONG_VALUE"),
        ("read", "", 400, "REQUIRED"),
    ],
)
async def test_a_topic_needs_its_scope(api: Api, scope: str, query: str, status: int, code: str) -> None:
    response = await (await a_key(api, scope)).call("GET", f"/v1/live{query}")
    assert (response.status, response.code) == (status, code)
