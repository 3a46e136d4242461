"""The stream reader: resumes behind its last entry after an outage, reports the gap, ends when cancelled."""

import asyncio
from collections.abc import Mapping, Sequence

from core.redis.cancel_and_wait import cancel_and_wait
from core.redis.stream_reader import FROM_NOW, StreamReader
from tests.support.servers import Server, on_both_servers
from tests.support.stack import Stack
from tests.support.waiting import until


class Reading:
    """Everything a reader reported: the field `n` of each entry, and "gap"."""

    def __init__(self, stack: Stack, last: str = "0-0", streams: Sequence[str] = ("stream",)) -> None:
        self.seen: list[str] = []
        begin = dict.fromkeys(streams, last)
        reader = StreamReader(stack.store, begin, self._take, lambda: self.seen.append("gap"))
        self.task = asyncio.create_task(reader.run())

    def _take(self, _: str, entry_id: str, fields: Mapping[str, str]) -> None:
        self.seen.append(fields["n"])

    async def has(self, *wanted: str) -> bool:
        async def is_there() -> bool:
            return self.seen == list(wanted)

        return await until(is_there)


@on_both_servers
async def test_entries_are_read_in_order_from_the_given_id(stack: Stack) -> None:
    first = await stack.store.command("XADD", "stream", "*", "n", "1")
    await stack.redis.xadd("stream", {"n": "2"})
    reading = Reading(stack, first)
    assert await reading.has("2")
    for n in ("3", "4"):
        await stack.redis.xadd("stream", {"n": n})
    assert await reading.has("2", "3", "4")
    await cancel_and_wait(reading.task)
    await stack.redis.delete("stream")


@on_both_servers
async def test_after_a_lost_connection_the_gap_is_reported_and_no_entry_is_read_twice(stack: Stack) -> None:
    await stack.redis.xadd("stream", {"n": "1"})
    reading = Reading(stack)
    assert await reading.has("1")
    await stack.redis.client_kill_filter(_type="normal", skipme=True)
    await stack.redis.xadd("stream", {"n": "2"})
    assert await reading.has("1", "gap", "2")
    await cancel_and_wait(reading.task)
    await stack.redis.delete("stream")


@on_both_servers
async def test_several_streams_are_read_by_one_connection(stack: Stack) -> None:
    reading = Reading(stack, streams=("first", "second"))
    await stack.redis.xadd("first", {"n": "1"})
    assert await reading.has("1")
    await stack.redis.xadd("second", {"n": "2"})
    assert await reading.has("1", "2")
    assert (await stack.redis.info("clients"))["clients_in_timeout_table"] == 1
    await stack.redis.client_kill_filter(_type="normal", skipme=True)
    await stack.redis.xadd("second", {"n": "3"})
    assert await reading.has("1", "2", "gap", "3")
    await cancel_and_wait(reading.task)
    await stack.redis.delete("first", "second")


async def test_a_stream_read_from_now_on_misses_nothing_that_comes_while_there_is_no_connection(stack: Stack) -> None:
    await stack.redis.xadd("first", {"n": "old"})
    reading = Reading(stack, FROM_NOW, ("first", "second"))

    async def is_blocked() -> bool:
        return bool((await stack.redis.info("clients"))["blocked_clients"])

    await until(is_blocked)
    await stack.redis.client_kill_filter(_type="normal", skipme=True)
    await stack.redis.xadd("second", {"n": "1"})
    assert await reading.has("gap", "1")
    await cancel_and_wait(reading.task)
    await stack.redis.delete("first", "second")


async def test_a_stream_that_has_lost_its_last_entries_is_read_on(stack: Stack) -> None:
    """As on a replica that was promoted without them: the reader does not wait until the ids have caught up."""
    await stack.redis.xadd("stream", {"n": "1"}, "5-0")
    reading = Reading(stack)
    await stack.redis.xadd("stream", {"n": "lost"}, "9-0")
    assert await reading.has("1", "lost")
    await stack.redis.delete("stream")
    await stack.redis.xadd("stream", {"n": "1"}, "5-0")
    await stack.redis.client_kill_filter(_type="normal", skipme=True)
    assert await reading.has("1", "lost", "gap")
    await stack.redis.xadd("stream", {"n": "2"}, "7-0")
    assert await reading.has("1", "lost", "gap", "2")
    await cancel_and_wait(reading.task)
    await stack.redis.delete("stream")


async def test_a_restart_of_the_server_loses_no_entry(own_server: Server) -> None:
    stack = await Stack.open(own_server)
    await stack.redis.xadd("stream", {"n": "1"})
    reading = Reading(stack)
    assert await reading.has("1")
    own_server.restart()
    await stack.store.command("XADD", "stream", "*", "n", "2")
    assert await reading.has("1", "gap", "2")
    await cancel_and_wait(reading.task)
    await stack.close()
