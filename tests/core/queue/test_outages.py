"""Workers and servers that stop, die or are replaced: what is kept, and which worker gets it then."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from redis.asyncio import Redis

from core.queue import Attempt, NewTask, Tube, Tubes
from core.redis.keys import KEYS
from core.redis.store import Store
from tests.core.queue.test_selection import MINE, in_every_state
from tests.support.audited import dump
from tests.support.servers import Server, on_both_servers
from tests.support.stack import HOUR, Stack
from tests.support.waiting import until
from tests.support.workshop import SOON, Workshop, echo
from tests.system.crash.cuttable_link import CuttableLink

MINUTE = timedelta(minutes=1)


class RecordingHandler:
    """Records the bodies of the tasks it gets."""

    def __init__(self) -> None:
        self.bodies: list[str] = []

    async def __call__(self, attempt: Attempt) -> None:
        self.bodies.append(attempt.body)


@on_both_servers
async def test_tasks_that_expired_without_workers_are_not_handled_later(stack: Stack, workshop: Workshop) -> None:
    await workshop.client.tubes.create(Tube("t", expires=5 * MINUTE))
    await workshop.client.put_many("t", [NewTask(f"stale {n}", lane=f"{n % 40}") for n in range(120)])
    await workshop.client.put("t", "lasts", lane="0", expires=stack.now() + HOUR)
    stack.advance_clock(10 * MINUTE)
    await workshop.client.put("t", "fresh", lane="0")
    handler = RecordingHandler()
    await workshop.start_worker(handler)
    await until(lambda: len(handler.bodies) >= 2)
    assert handler.bodies == ["lasts", "fresh"]
    stats = (await stack.queue.inspector.stats()).tubes["t"]
    assert (stats.expired, stats.claimed) == (120, 2)


async def test_a_killed_server_restarts_with_every_task_in_its_state(own_server: Server) -> None:
    stack = await Stack.open(own_server)
    await Tubes(stack.store).create(Tube("kept", keep=HOUR, pace=5.0, retry="park"))
    await Tubes(stack.store).set_weight("uni", 3)
    await in_every_state(stack, **MINE)
    await stack.queue.put("kept", NewTask("", reply="client"))
    await stack.finish_all("kept")
    before = await lasting(own_server)
    own_server.kill()
    own_server.start()
    assert await lasting(own_server) == before
    await stack.audit()
    await stack.close()


async def lasting(server: Server) -> dict[str, object]:
    """Return all keys without the worker of the timer, which may expire during the restart."""
    timer = KEYS["timer"].at(0)
    return {key: kept.value for key, kept in (await dump(server.url)).items() if key != timer}


@on_both_servers
async def test_a_tube_without_workers_keeps_its_tasks_while_other_tubes_are_served(
    stack: Stack, workshop: Workshop
) -> None:
    handler = RecordingHandler()
    await workshop.client.put_many("down", [NewTask(str(n), lane=f"{n % 3}") for n in range(30)])
    await workshop.start_worker(echo, tube="up")
    for _ in range(7):
        assert await workshop.client.call("up", "ab", SOON) == "AB"
        stack.advance_clock(timedelta(days=1))
        await stack.tick()
    assert (await stack.queue.inspector.stats()).tubes["down"].live == 30
    await workshop.start_worker(handler, tube="down", concurrency=1)
    await until(lambda: len(handler.bodies) == 30)
    assert handler.bodies == [str(n) for n in range(30)]


async def test_a_call_is_answered_although_its_first_worker_dies(stack: Stack, workshop: Workshop) -> None:
    started = asyncio.Event()

    async def dies(attempt: Attempt) -> str:
        started.set()
        await asyncio.Event().wait()
        return "never"

    worker = await workshop.start_worker(dies, lease=timedelta(milliseconds=300))
    calling = asyncio.create_task(workshop.client.call("t", "text", timedelta(seconds=20)))
    await started.wait()
    workshop.workers.pop(worker).cancel()  # as if its process had died
    await workshop.start_worker(echo)
    assert await calling == "TEXT"


@on_both_servers
async def test_a_dead_worker_gets_no_tasks(stack: Stack, workshop: Workshop) -> None:
    handler = RecordingHandler()
    gone = await workshop.start_worker(handler)
    running = workshop.workers.pop(gone)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    task_id = await workshop.client.put("t", "a")
    assert await stack.state(task_id) == "ready"
    await workshop.start_worker(handler)
    await until(lambda: handler.bodies == ["a"])
    assert (await stack.queue.inspector.stats()).tubes["t"].claimed == 1


@pytest.fixture
async def pair(own_server: Server, tmp_path: Path) -> AsyncIterator[tuple[Server, Server]]:
    """A server and its replica, which has copied its data."""
    replica = Server(tmp_path / "replica")
    replica.start()
    password = own_server.place.password
    async with Redis.from_url(replica.url) as client:
        await client.config_set("masterauth", password)
        await client.execute_command("REPLICAOF", "127.0.0.1", own_server.place.port)  # type: ignore[no-untyped-call]
        await until(lambda: _is_linked(client))
    yield own_server, replica
    replica.kill()


async def _is_linked(replica: Redis) -> bool:
    """Whether the replica has the data and receives every further write."""
    return str((await replica.info("replication"))["master_link_status"]) == "up"


async def test_deferral_leases_and_lanes_continue_after_a_failover(pair: tuple[Server, Server]) -> None:
    """All use one address, behind which the replica replaces the server that was killed."""
    first, second = pair
    link = CuttableLink(first.place.port)
    await link.start()
    store = await Store.open(first.url_through(link.port))
    stack, workshop, handler = Stack(store, first), Workshop(store), RecordingHandler()
    await stack.queue.put("leased", NewTask(""))
    (leased,) = await stack.take("leased", lease=HOUR)
    await stack.queue.put("t", NewTask("lost", lane="lane"))
    (lost,) = await stack.take(lease=timedelta(seconds=2))
    due = stack.now() + timedelta(seconds=3)
    await stack.queue.put_many("t", [NewTask("behind", lane="lane"), NewTask("deferred", due=due)])
    await workshop.start_worker(handler)
    await _wait_for_replica(first)
    first.kill()
    await _promote(second, first.place.password)
    link.redirect(second.place.port)
    await until(lambda: len(handler.bodies) == 3)
    assert stack.now() >= due
    assert handler.bodies == ["lost", "behind", "deferred"]
    assert await stack.queue.settle(lost) == "stale"
    assert await stack.queue.settle(leased) == "done"
    await stack.audit()
    await workshop.close()
    await stack.close()
    await link.stop()


async def _wait_for_replica(server: Server) -> None:
    async with Redis.from_url(server.url) as client:
        await until(lambda: client.wait(1, 1000))


async def _promote(server: Server, password: str) -> None:
    """Make a replica the primary, with the password that its clients use."""
    async with Redis.from_url(server.url) as client:
        await client.execute_command("REPLICAOF", "NO", "ONE")  # type: ignore[no-untyped-call]
        await client.config_set("requirepass", password)
