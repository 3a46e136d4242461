"""The pipeline over a connection that breaks or stays silent: order, repetition, the silence timeout."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable

import pytest

from core.redis.cluster import ShardMap
from core.redis.pipelines import Pipeline, Pipelines
from core.redis.topology import Topology
from tests.support.servers import Server
from tests.support.serving import serving
from tests.support.waiting import stays, until
from tests.system.crash.cuttable_link import CuttableLink

SILENCE = 0.5
CLIENT_ID = ("CLIENT", "ID")
SLOW = ("BLPOP", "never pushed", 0.2)
"""A command whose reply takes 200 ms; the next ones on the connection wait for it."""


LARGE_PUSH = ("EVAL", "return redis.call('RPUSH', KEYS[1], ARGV[1])", 1, "list")
PADDING = "x" * 2**18


@pytest.fixture
async def link(server: Server) -> AsyncIterator[CuttableLink]:
    """A link to the server, which a test can block and cut."""
    async with serving(CuttableLink(server.place.port)) as opened:
        yield opened


@pytest.fixture
async def pipeline(server: Server, link: CuttableLink) -> AsyncIterator[Pipeline]:
    """A pipeline through the link; it is connected."""
    opened = Pipeline(Topology(server.url_through(link.port)), silence=SILENCE)
    await opened.call("PING")
    yield opened
    await opened.close()


async def test_commands_keep_their_order_over_a_reconnect(
    pipeline: Pipeline, link: CuttableLink, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    """Those that were in flight are written again before those that were called while there was no connection."""
    caplog.set_level("DEBUG")
    link.block_requests()
    calls = [pipeline.call("RPUSH", "list", n) for n in range(20)]
    await until(lambda: link.blocked)
    link.redirect(1)  # nothing listens there
    await until(lambda: "Redis does not answer" in caplog.text)
    calls += [pipeline.call("RPUSH", "list", n) for n in range(20, 40)]
    link.redirect(server.place.port)
    assert await asyncio.gather(*calls) == list(range(1, 41))
    assert await pipeline.call("LRANGE", "list", 0, -1) == [str(n) for n in range(40)]
    await pipeline.call("DEL", "list")


async def test_commands_keep_their_order_if_the_connection_breaks_while_some_could_not_be_written(
    pipeline: Pipeline, link: CuttableLink
) -> None:
    """15 MB of commands fill the buffers of the connection: some are in flight, the others wait."""
    link.block_requests()
    calls = [pipeline.call(*LARGE_PUSH, n, PADDING) for n in range(60)]
    await until(lambda: link.blocked)
    link.cut()
    assert await asyncio.gather(*calls) == list(range(1, 61))
    assert await pipeline.call("LRANGE", "list", 0, -1) == [str(n) for n in range(60)]
    await pipeline.call("DEL", "list")


async def test_a_connection_that_stays_silent_is_replaced_and_its_commands_are_repeated(
    pipeline: Pipeline, link: CuttableLink, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    first = await pipeline.call(*CLIENT_ID)
    link.block_replies()
    second = pipeline.call(*CLIENT_ID)
    await until(lambda: f"silent for {SILENCE} s" in caplog.text)
    assert not second.done()
    link.release()
    assert await asyncio.wait_for(second, 20) != first


async def test_a_connection_on_which_replies_keep_coming_is_kept(pipeline: Pipeline) -> None:
    """All replies together take longer than the silence that is allowed."""
    first = await pipeline.call(*CLIENT_ID)
    await asyncio.gather(*(pipeline.call(*SLOW) for _ in range(6)))
    assert await pipeline.call(*CLIENT_ID) == first


async def test_an_idle_connection_is_kept(pipeline: Pipeline) -> None:
    first = await pipeline.call(*CLIENT_ID)
    end = time.monotonic() + 3 * SILENCE
    await until(lambda: time.monotonic() > end)
    assert await pipeline.call(*CLIENT_ID) == first


class OneShard(ShardMap):
    """A map of one shard whose primary the test chooses."""

    def __init__(self, url: str) -> None:
        self.primary = Topology(url)
        super().__init__(url, 1)

    def of(self, home: int) -> Topology:
        return self.primary

    def primaries(self) -> dict[Topology, list[int]]:
        return {self.primary: [0]}

    def on_change(self, listener: Callable[[], None]) -> None:
        self.notify = listener


async def test_calls_go_to_a_new_primary_when_the_old_one_has_answered_those_in_flight(
    link: CuttableLink, server: Server
) -> None:
    shard_map = OneShard(server.url_through(link.port))
    routes = Pipelines(shard_map, lambda at, routes: Pipeline(at, routes=routes))
    await routes.of(0).call("PING")
    calls = [routes.of(0).call("RPUSH", "list", 0)]
    link.block_requests()
    calls += [routes.of(0).call("RPUSH", "list", 1)]
    await until(lambda: link.blocked)
    old, shard_map.primary = shard_map.primary, Topology(server.url)
    shard_map.primaries = lambda: {old: [0], shard_map.primary: [0]}  # type: ignore[method-assign]  # it is still one
    shard_map.notify()
    calls += [routes.of(0).call("RPUSH", "list", 2)]
    await stays(lambda: not calls[-1].done())
    link.release()
    assert await asyncio.gather(*calls) == [1, 2, 3]
    assert await routes.of(0).call("LRANGE", "list", 0, -1) == ["0", "1", "2"]
    await routes.of(0).call("DEL", "list")
    await routes.close()
