"""Workers: lanes, free attempt_pool, leases, graceful ends."""

import asyncio
import sys
import time
from datetime import timedelta

import pytest

from core.queue.client import Attempt, NewTask
from tests.support.servers import Server
from tests.support.stack import Stack
from tests.support.waiting import until
from tests.support.workshop import SOON, Shop


@pytest.mark.row("K-13", "K-12", "K-39")
async def test_hundreds_of_handlers_keep_the_lanes(shop: Shop) -> None:
    seen: dict[str, list[int]] = {}
    busy: set[str] = set()
    side_by_side: list[str] = []

    async def handler(job: Attempt) -> None:
        side_by_side.extend({job.task.lane} & busy)  # what a handler raises is a retry
        busy.add(job.task.lane)
        await job.save("at work")
        seen.setdefault(job.task.lane, []).append(int(job.body))
        busy.discard(job.task.lane)

    await shop.work.put_many("t", [NewTask(str(n), lane=f"lane {n % 60}") for n in range(600)])
    for _ in range(2):
        await shop.open(handler, concurrency=300)
    await until(lambda: sum(map(len, seen.values())) == 600)
    assert all(bodies == sorted(bodies) for bodies in seen.values())
    assert side_by_side == []


@pytest.mark.row("K-39")
async def test_nothing_is_taken_that_no_handler_is_free_for(stack: Stack, shop: Shop) -> None:
    gate, running = asyncio.Event(), 0

    async def handler(job: Attempt) -> None:
        nonlocal running
        running += 1
        await gate.wait()

    await shop.open(handler, concurrency=3)
    for _ in range(10):
        await shop.work.put("t", "")
    await until(lambda: running == 3)
    assert (await stack.queue.stats())["tubes"]["t"]["states"]["ready"] == 7
    gate.set()
    await until(lambda: running == 10)


@pytest.mark.row("K-39", "K-24")
async def test_a_worker_that_is_stopped_finishes_what_it_has_and_takes_nothing_more(stack: Stack, shop: Shop) -> None:
    gate, began = asyncio.Event(), asyncio.Event()

    async def handler(job: Attempt) -> None:
        began.set()
        await gate.wait()

    worker = await shop.open(handler, concurrency=1)
    for body in ("in hand", "next"):
        await shop.work.put("t", body)
    await began.wait()
    worker.stop()
    gate.set()
    await shop.close(worker)
    assert await stack.finish_all() == ["next"]


@pytest.mark.row("K-39", "K-30")
async def test_what_is_not_finished_within_the_grace_is_given_back_unattempted(stack: Stack, shop: Shop) -> None:
    began = asyncio.Event()

    async def endless(job: Attempt) -> None:
        began.set()
        await asyncio.Event().wait()

    worker = await shop.open(endless)
    await shop.work.put("t", "endless")
    await began.wait()
    worker.stop(timedelta(milliseconds=20))
    await shop.close(worker)
    (task,) = await stack.take()
    assert task.attempts == 1


@pytest.mark.row("K-39")
async def test_a_lease_outlives_a_busy_event_loop(own_server: Server) -> None:
    """The handler blocks the loop for three leases; another process asks for work meanwhile."""
    stack = await Stack.open(own_server)
    shop, begun = Shop(stack.store), 0

    async def blocking(job: Attempt) -> str:
        nonlocal begun
        begun += 1
        time.sleep(1.5)  # noqa: ASYNC251 - that is what this test is about
        return "whole"

    await shop.open(blocking, lease=timedelta(milliseconds=500))
    ticker = await asyncio.create_subprocess_exec(*_claiming(own_server), stdout=asyncio.subprocess.PIPE)
    assert ticker.stdout
    await ticker.stdout.readline()
    assert await shop.work.call("t", "", SOON) == "whole"
    assert begun == 1
    ticker.kill()
    await ticker.wait()
    await shop.end()
    await stack.close()


def _claiming(server: Server) -> list[str]:
    """A process that lets time go on ten times a second, as any worker of the stack does."""
    code = (
        "import asyncio\nfrom datetime import timedelta as d\n"
        "from core.queue.queue import Queue\nfrom core.redis.store import Store\n"
        "async def main():\n"
        f"    queue = Queue(await Store.open({server.url!r}))\n"
        "    print('ready', flush=True)\n"
        "    while True:\n"
        "        await queue.claim('other', 'other', shard=0, limit=0, lease=d(seconds=9), floor=d(seconds=9))\n"
        "        await asyncio.sleep(0.1)\n"
        "asyncio.run(main())\n"
    )
    return [sys.executable, "-c", code]


@pytest.mark.row("K-04", "K-39")
async def test_a_handler_that_hangs_loses_its_task_to_another(stack: Stack, shop: Shop) -> None:
    hanging, bodies = asyncio.Event(), []

    async def handler(job: Attempt) -> None:
        bodies.append(job.body)
        if job.task.attempts == 1:
            await hanging.wait()

    lease = timedelta(milliseconds=150)
    await shop.open(handler, lease=lease, longest=timedelta(milliseconds=200))
    await shop.work.put("t", "a")
    await until(lambda: bodies == ["a", "a"])
    hanging.set()
