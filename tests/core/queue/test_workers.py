"""Workers: lanes, concurrency, leases, stopping."""

import asyncio
import sys
import time
from datetime import timedelta

import pytest

from core.queue import Attempt, NewTask, Retry
from core.queue.workers.heartbeat import Heartbeat
from tests.support.servers import Server, on_both_servers
from tests.support.stack import Stack
from tests.support.waiting import until
from tests.support.workshop import SOON, Workshop


async def test_hundreds_of_handlers_keep_the_order_of_lanes(workshop: Workshop) -> None:
    seen: dict[str, list[int]] = {}
    busy: set[str] = set()
    side_by_side: list[str] = []

    async def handler(attempt: Attempt) -> None:
        side_by_side.extend({attempt.task.lane} & busy)  # what a handler raises is a retry
        busy.add(attempt.task.lane)
        await attempt.save("running")
        seen.setdefault(attempt.task.lane, []).append(int(attempt.body))
        busy.discard(attempt.task.lane)

    await workshop.client.put_many("t", [NewTask(str(n), lane=f"lane {n % 60}") for n in range(600)])
    for _ in range(2):
        await workshop.start_worker(handler, concurrency=300)
    await until(lambda: sum(map(len, seen.values())) == 600)
    assert all(bodies == sorted(bodies) for bodies in seen.values())
    assert side_by_side == []


async def test_a_worker_takes_no_task_without_a_free_handler(stack: Stack, workshop: Workshop) -> None:
    gate, running = asyncio.Event(), 0

    async def handler(attempt: Attempt) -> None:
        nonlocal running
        running += 1
        await gate.wait()

    await workshop.start_worker(handler, concurrency=3)
    for _ in range(10):
        await workshop.client.put("t", "")
    await until(lambda: running == 3)
    assert (await stack.queue.inspector.stats()).tubes["t"].states.ready == 7
    gate.set()
    await until(lambda: running == 10)


@on_both_servers
async def test_leases_are_extended_after_the_server_lost_its_functions(stack: Stack) -> None:
    await stack.queue.put("t", NewTask("a"))
    (task,) = await stack.take()
    before = await stack.redis.zscore("queue:{0}:lease", task.id)
    await stack.redis.function_flush()
    heartbeat = Heartbeat(stack.store, timedelta(seconds=1), timedelta(hours=1))
    heartbeat.add(task, time.monotonic())
    heartbeat.start()

    async def is_extended() -> bool:
        return bool(await stack.redis.zscore("queue:{0}:lease", task.id) != before)

    assert await until(is_extended)
    heartbeat.stop()


async def test_a_stopped_worker_finishes_its_tasks_and_takes_no_more(stack: Stack, workshop: Workshop) -> None:
    gate, started = asyncio.Event(), asyncio.Event()

    async def handler(attempt: Attempt) -> None:
        started.set()
        await gate.wait()

    worker = await workshop.start_worker(handler, concurrency=1)
    for body in ("running", "next"):
        await workshop.client.put("t", body)
    await started.wait()
    worker.stop()
    gate.set()
    await workshop.stop_worker(worker)
    assert await stack.finish_all() == ["next"]


async def test_a_task_not_finished_within_the_grace_is_released_without_counting_the_attempt(
    stack: Stack, workshop: Workshop
) -> None:
    started = asyncio.Event()

    async def endless(attempt: Attempt) -> None:
        started.set()
        await asyncio.Event().wait()

    worker = await workshop.start_worker(endless)
    await workshop.client.put("t", "endless")
    await started.wait()
    worker.stop(timedelta(milliseconds=20))
    await workshop.stop_worker(worker)
    (task,) = await stack.take()
    assert task.attempts == 1


async def test_a_lease_outlives_a_busy_event_loop(own_server: Server) -> None:
    """The handler blocks the loop for two leases; another process claims meanwhile."""
    stack = await Stack.open(own_server)
    workshop, attempts = Workshop(stack.store), 0

    async def blocking(attempt: Attempt) -> str:
        nonlocal attempts
        attempts += 1
        time.sleep(3.2)  # noqa: ASYNC251 - that is what this test is about
        return "whole"

    await workshop.start_worker(blocking, lease=timedelta(seconds=1.5))
    claiming = await asyncio.create_subprocess_exec(*_claiming_process(own_server), stdout=asyncio.subprocess.PIPE)
    assert claiming.stdout
    await claiming.stdout.readline()
    assert await workshop.client.call("t", "", SOON) == "whole"
    assert attempts == 1
    claiming.kill()
    await claiming.wait()
    await workshop.close()
    await stack.close()


def _claiming_process(server: Server) -> list[str]:
    """Return the command of a process that claims ten times a second, so that lost leases are noticed."""
    code = (
        "import asyncio\nfrom datetime import timedelta as d\n"
        "from core.queue import Queue\nfrom core.queue.task import ClaimRequest\nfrom core.redis.store import Store\n"
        "async def main():\n"
        f"    queue = Queue(await Store.open({server.url!r}))\n"
        "    print('ready', flush=True)\n"
        "    while True:\n"
        "        await queue.claim(0, ClaimRequest('other', 'other', 0, d(seconds=9), d(seconds=9)))\n"
        "        await asyncio.sleep(0.1)\n"
        "asyncio.run(main())\n"
    )
    return [sys.executable, "-c", code]


async def test_the_task_of_a_hanging_handler_goes_to_another(stack: Stack, workshop: Workshop) -> None:
    hanging, bodies = asyncio.Event(), []

    async def handler(attempt: Attempt) -> None:
        bodies.append(attempt.body)
        if attempt.task.attempts == 1:
            await hanging.wait()

    lease = timedelta(milliseconds=150)
    await workshop.start_worker(handler, lease=lease, max_runtime=timedelta(milliseconds=200))
    await workshop.client.put("t", "a")
    await until(lambda: bodies == ["a", "a"])
    hanging.set()


@on_both_servers
@pytest.mark.parametrize("flags", ["Kgx", ""], ids=["with events", "without events"])
async def test_a_lane_goes_on_at_once_with_and_without_events(stack: Stack, workshop: Workshop, flags: str) -> None:
    """Regression: without events a lane went on by one task per `max_sleep`."""
    done: list[str] = []

    async def handler(attempt: Attempt) -> None:
        done.append(attempt.body)

    await stack.redis.config_set("notify-keyspace-events", flags)
    await workshop.client.put_many("t", [NewTask(str(n), lane="lane") for n in range(1000)])
    await workshop.start_worker(handler, max_sleep=timedelta(minutes=1))
    await until(lambda: len(done) == 1000, within=60)
    assert done == [str(n) for n in range(1000)]


async def test_a_retried_task_is_attempted_again_in_time_without_events(stack: Stack, workshop: Workshop) -> None:
    """Regression: its worker slept on, because only an event reported that a task falls due earlier."""
    attempts: list[int] = []

    async def handler(attempt: Attempt) -> Retry | None:
        attempts.append(attempt.task.attempts)
        return Retry(timedelta(milliseconds=20)) if attempt.task.attempts < 5 else None

    await stack.redis.config_set("notify-keyspace-events", "")
    await workshop.start_worker(handler, max_sleep=timedelta(minutes=1))
    await stack.queue.put("t", NewTask("a"))
    await workshop.start_worker(handler, max_sleep=timedelta(minutes=1))
    await until(lambda: attempts == [1, 2, 3, 4, 5])
