"""Workers, servers and clients that are away, die or are replaced: what is kept, and who gets it then."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from redis.asyncio import Redis

from core.queue.client import Attempt
from core.queue.queue import NewTask
from core.queue.tubes import Tube, Tubes
from core.redis.store import Store
from tests.crash.cuttable_link import Wire
from tests.queue.test_selection import MINE, in_every_state
from tests.support.audited import dump
from tests.support.servers import Server, on_both_servers
from tests.support.stack import HOUR, Stack
from tests.support.waiting import until
from tests.support.workshop import SOON, Shop, echo

MINUTE = timedelta(minutes=1)


class Noting:
    """A handler that notes what it got."""

    def __init__(self) -> None:
        self.bodies: list[str] = []

    async def __call__(self, job: Attempt) -> None:
        self.bodies.append(job.body)


@on_both_servers
@pytest.mark.row("K-02", "K-03")
async def test_after_ten_minutes_without_workers_nobody_gets_late_answers(stack: Stack, shop: Shop) -> None:
    await shop.work.tubes.create(Tube("t", expires=5 * MINUTE))
    await shop.work.put_many("t", [NewTask(f"stale {n}", lane=f"{n % 40}") for n in range(120)])
    await shop.work.put("t", "lasts", lane="0", expires=stack.now() + HOUR)
    stack.passes(10 * MINUTE)
    await shop.work.put("t", "fresh", lane="0")
    noting = Noting()
    await shop.open(noting)
    await until(lambda: len(noting.bodies) >= 2)
    assert noting.bodies == ["lasts", "fresh"]
    told = (await stack.queue.stats())["tubes"]["t"]
    assert (told["expired"], told["claimed"]) == (120, 2)


@pytest.mark.row("K-31")
async def test_a_killed_server_comes_back_with_every_task_in_its_state(own_server: Server) -> None:
    stack = await Stack.open(own_server)
    await Tubes(stack.store).create(Tube("kept", keep=HOUR, pace=5.0, retry="park"))
    await Tubes(stack.store).set_weight("uni", 3)
    await in_every_state(stack, **MINE)
    await stack.queue.put("kept", "", reply="client")
    await stack.finish_all("kept")
    before = {key: kept.value for key, kept in (await dump(own_server.url)).items()}
    own_server.kill()
    own_server.start()
    assert {key: kept.value for key, kept in (await dump(own_server.url)).items()} == before
    await stack.audit()
    await stack.close()


@on_both_servers
@pytest.mark.row("K-41")
async def test_a_tube_whose_workers_are_down_keeps_its_tasks_while_others_are_served(stack: Stack, shop: Shop) -> None:
    noting = Noting()
    await shop.work.put_many("down", [NewTask(str(n), lane=f"{n % 3}") for n in range(30)])
    await shop.open(echo, tube="up")
    for _ in range(7):
        assert await shop.work.call("up", "ab", SOON) == "AB"
        stack.passes(timedelta(days=1))
        await stack.tick()
    assert (await stack.queue.stats())["tubes"]["down"]["live"] == 30
    await shop.open(noting, tube="down", concurrency=1)
    await until(lambda: len(noting.bodies) == 30)
    assert noting.bodies == [str(n) for n in range(30)]


@pytest.mark.row("K-20", "K-30")
async def test_an_answer_survives_the_death_of_its_worker(stack: Stack, shop: Shop) -> None:
    began = asyncio.Event()

    async def dies(job: Attempt) -> str:
        began.set()
        await asyncio.Event().wait()
        return "never"

    worker = await shop.open(dies, lease=timedelta(milliseconds=300))
    calling = asyncio.create_task(shop.work.call("t", "text", timedelta(seconds=20)))
    await began.wait()
    shop.workers.pop(worker).cancel()  # it says nothing more
    await shop.open(echo)
    assert await calling == "TEXT"


@on_both_servers
@pytest.mark.row("K-32")
async def test_nothing_is_handed_to_a_worker_that_is_gone(stack: Stack, shop: Shop) -> None:
    noting = Noting()
    gone = await shop.open(noting)
    running = shop.workers.pop(gone)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    task_id = await shop.work.put("t", "a")
    assert await stack.state(task_id) == "ready"
    await shop.open(noting)
    await until(lambda: noting.bodies == ["a"])
    assert (await stack.queue.stats())["tubes"]["t"]["claimed"] == 1


@pytest.fixture
async def pair(own_server: Server, tmp_path: Path) -> AsyncIterator[tuple[Server, Server]]:
    """A server and its replica, in step."""
    replica = Server(tmp_path / "replica")
    replica.start()
    password = own_server.place.password
    async with Redis.from_url(replica.url) as client:
        await client.config_set("masterauth", password)
        await client.execute_command("REPLICAOF", "127.0.0.1", own_server.place.port)  # type: ignore[no-untyped-call]
        await until(lambda: _follows(client), within=20)
    yield own_server, replica
    replica.kill()


async def _follows(replica: Redis) -> bool:
    """It has what was there; from now on it is told of every step."""
    return str((await replica.info("replication"))["master_link_status"]) == "up"


@pytest.mark.row("K-40")
async def test_after_a_failover_deferral_and_leases_go_on(pair: tuple[Server, Server]) -> None:
    """Everybody uses one address, behind which the replica takes the place of the server that was killed."""
    first, second = pair
    wire = Wire(first.place.port)
    await wire.start()
    store = await Store.open(first.url_through(wire.port))
    stack, shop, noting = Stack(store, first), Shop(store), Noting()
    await stack.queue.put("held", "")
    (held,) = await stack.take("held", lease=HOUR)
    await stack.queue.put("t", "lost", lane="lane")
    (lost,) = await stack.take(lease=timedelta(seconds=2))
    due = stack.now() + timedelta(seconds=3)
    await stack.queue.put_many("t", [NewTask("behind", lane="lane"), NewTask("deferred", due=due)])
    await shop.open(noting)
    await _in_step(first)
    first.kill()
    await _promote(second, first.place.password)
    wire.turn_to(second.place.port)
    await until(lambda: len(noting.bodies) == 3, within=20)
    assert stack.now() >= due
    assert noting.bodies == ["lost", "behind", "deferred"]
    assert await stack.queue.settle(lost) == "stale"
    assert await stack.queue.settle(held) == "done"
    await stack.audit()
    await shop.end()
    await stack.close()
    await wire.stop()


async def _in_step(server: Server) -> None:
    async with Redis.from_url(server.url) as client:
        await until(lambda: client.wait(1, 1000), within=20)


async def _promote(server: Server, password: str) -> None:
    """With the password that everybody knows."""
    async with Redis.from_url(server.url) as client:
        await client.execute_command("REPLICAOF", "NO", "ONE")  # type: ignore[no-untyped-call]
        await client.config_set("requirepass", password)
