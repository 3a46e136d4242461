"""Sleeping workers are woken: by the bell, once per idle period; by time, through one keeper of the timer."""

import asyncio
import time
from datetime import timedelta

import pytest
from redis.asyncio import Redis

from core.queue.queue import Claim, Task
from core.queue.worker import Worker, WorkerOptions
from core.redis.keys import KEYS, bell
from core.redis.store import Store
from tests.support.servers import on_both_servers
from tests.support.stack import Stack
from tests.support.waiting import until

pytestmark = [on_both_servers, pytest.mark.row("D-06", "K-32")]

BELL = bell(0, "t")
# Longer than any test: whatever wakes a worker here, it is not its floor.
SLEEPY = WorkerOptions(floor=timedelta(seconds=50))


class Ears:
    """Hears what becomes of one key."""

    def __init__(self, redis: Redis, key: str) -> None:
        self._pubsub = redis.pubsub()
        self._channel = f"__keyspace@0__:{key}"
        self.events: list[str] = []

    async def open(self) -> "Ears":
        await self._pubsub.subscribe(self._channel)
        self._task = asyncio.create_task(self._listen())
        return self

    async def _listen(self) -> None:
        async for message in self._pubsub.listen():
            if message["type"] == "message":
                self.events.append(message["data"])

    async def close(self) -> None:
        self._task.cancel()
        await self._pubsub.aclose()  # type: ignore[no-untyped-call]


class Crew:
    """Workers that note when they got what."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self.got: list[tuple[str, float]] = []
        self._workers: list[tuple[Worker, asyncio.Task[None], Store]] = []

    async def hire(self, pace: WorkerOptions = SLEEPY, tube: str = "t", store: Store | None = None) -> Worker:
        """A worker with a connection of its own, as in a process of its own; asleep when this comes back."""
        store = store or await Store.open(self.stack.server.url)
        worker = Worker(store, tube, self._handle, pace=pace)
        self._workers.append((worker, asyncio.create_task(worker.run()), store))
        # The second claim is that of the subscription.
        await until(lambda: worker.claims >= 2)
        return worker

    async def _handle(self, task: Task, claim: Claim) -> None:
        self.got.append((task.body, time.monotonic()))
        await self.stack.queue.settle(task)

    @property
    def bodies(self) -> list[str]:
        return [body for body, _ in self.got]

    async def dismiss(self) -> None:
        for worker, running, store in self._workers:
            worker.stop()
            await running
            await store.close()


@pytest.fixture
async def crew(stack: Stack) -> "Crew":  # type: ignore[misc]
    hired = Crew(stack)
    yield hired
    await hired.dismiss()


async def test_the_bell_is_there_only_while_somebody_sleeps(stack: Stack) -> None:
    assert not await stack.redis.exists(BELL)
    await stack.claim()
    assert 0 < await stack.redis.pttl(BELL) <= 60_000
    await stack.queue.put("t", "a")
    assert not await stack.redis.exists(BELL)
    await stack.take()
    assert not await stack.redis.exists(BELL)


async def test_the_bell_lives_until_the_next_due_moment(stack: Stack) -> None:
    await stack.queue.put("t", "a", due=stack.now() + timedelta(seconds=7))
    await stack.claim()
    assert 5_000 < await stack.redis.pttl(BELL) <= 7_000


async def test_who_has_no_room_does_not_set_the_bell(stack: Stack) -> None:
    await stack.claim(limit=0)
    assert not await stack.redis.exists(BELL)


async def test_a_thousand_tasks_ring_once(stack: Stack) -> None:
    ears = await Ears(stack.redis, BELL).open()
    await stack.claim()
    await asyncio.gather(*(stack.queue.put("t", str(number)) for number in range(1000)))
    await stack.finish_all()
    await until(lambda: ears.events[-1:] == ["set"] or "del" in ears.events)
    assert ears.events.count("del") == 1
    await ears.close()


async def test_work_of_another_tube_does_not_ring(stack: Stack) -> None:
    await stack.claim()
    await stack.queue.put("u", "a")
    assert await stack.redis.exists(BELL)


async def test_what_comes_free_rings(stack: Stack) -> None:
    """The end of a lane's holder, a kick and a promoted task make work takeable as much as a put does."""
    first = await stack.queue.put("t", "a", lane="lane")
    await stack.queue.put("t", "b", lane="lane")
    (task,) = await stack.take()
    await stack.claim()
    await stack.queue.settle(task)
    assert not await stack.redis.exists(BELL)
    await stack.finish_all()
    buried = await stack.queue.put("t", "c")
    await stack.queue.bury(buried)
    await stack.claim()
    await stack.queue.kick(buried)
    assert not await stack.redis.exists(BELL)
    assert first != buried


@pytest.mark.row("K-32")
async def test_a_sleeping_worker_is_woken_at_once(stack: Stack, crew: Crew) -> None:
    await crew.hire()
    put_at = time.monotonic()
    await stack.queue.put("t", "a")
    await until(lambda: crew.got)
    assert crew.got[0][1] - put_at < 0.5


async def test_a_worker_with_much_to_do_takes_all_of_it_without_another_bell(stack: Stack, crew: Crew) -> None:
    worker = await crew.hire(WorkerOptions(floor=timedelta(seconds=50), tasks=4, entries=4))
    await asyncio.gather(*(stack.queue.put("t", str(number)) for number in range(200)))
    await until(lambda: len(crew.got) == 200)
    assert sorted(crew.bodies) == sorted(map(str, range(200)))
    assert worker.claims <= 210


@pytest.mark.row("D-07")
async def test_a_worker_looks_at_a_due_moment_and_not_before(
    stack: Stack, crew: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It wakes earlier, by what a timer may be late: were it not to wait, it would look again and again until then."""
    monkeypatch.setattr("core.queue.worker._TICK", 0.015)
    worker, moments = await crew.hire(), 20
    start = stack.now() + timedelta(milliseconds=300)
    for number in range(moments):
        await stack.queue.put("t", str(number), due=start + number * timedelta(milliseconds=30))
    await asyncio.sleep(0.1)
    before = worker.claims
    await until(lambda: len(crew.got) == moments)
    assert crew.bodies == [str(number) for number in range(moments)]
    assert worker.claims - before <= 4 * moments


@pytest.mark.row("D-07")
async def test_a_due_moment_wakes_a_worker_although_no_event_is_sent(stack: Stack, crew: Crew) -> None:
    await stack.redis.config_set("notify-keyspace-events", "")
    due = stack.now() + timedelta(seconds=0.5)
    await stack.queue.put("t", "a", due=due)
    await crew.hire()
    await until(lambda: crew.got)
    assert abs((stack.now() - due).total_seconds()) < 0.3


@pytest.mark.row("D-07")
async def test_an_earlier_moment_wakes_the_keeper_of_the_timer(stack: Stack, crew: Crew) -> None:
    await stack.queue.put("t", "later", due=stack.now() + timedelta(seconds=40))
    await crew.hire()
    await crew.hire()
    due = stack.now() + timedelta(seconds=0.3)
    await stack.queue.put("t", "sooner", due=due)
    await until(lambda: crew.bodies == ["sooner"])
    assert abs((stack.now() - due).total_seconds()) < 0.3


async def test_one_of_many_workers_keeps_the_timer(stack: Stack) -> None:
    keepers = [(await stack.claim(owner=f"worker {number}", limit=0)).keeper for number in range(5)]
    assert keepers == [True, False, False, False, False]
    assert (await stack.claim(owner="worker 0", limit=0)).keeper
    await stack.redis.delete("queue:{0}:timer")
    assert (await stack.claim(owner="worker 3", limit=0)).keeper


async def test_the_timer_of_a_dead_keeper_runs_out(stack: Stack) -> None:
    await stack.claim(owner="dead")
    assert 0 < await stack.redis.pttl("queue:{0}:timer") <= 2 * 200


async def test_a_moment_that_is_not_the_earliest_disturbs_nobody(stack: Stack) -> None:
    await stack.queue.put("t", "a", due=stack.now() + timedelta(seconds=30))
    await stack.claim(owner="keeper")
    await stack.queue.put("t", "b", due=stack.now() + timedelta(seconds=40))
    assert await stack.redis.get("queue:{0}:timer") == "keeper"
    await stack.queue.put("t", "c", due=stack.now() + timedelta(seconds=20))
    assert await stack.redis.get("queue:{0}:timer") is None


async def test_without_any_event_work_is_found_within_the_floor(stack: Stack, crew: Crew) -> None:
    await crew.hire(WorkerOptions(floor=timedelta(seconds=0.4)))
    await stack.redis.config_set("notify-keyspace-events", "")
    put_at = time.monotonic()
    await stack.queue.put("t", "a")
    await until(lambda: crew.got)
    assert crew.got[0][1] - put_at < 0.8


async def test_an_idle_worker_asks_once_per_floor(stack: Stack, crew: Crew) -> None:
    worker = await crew.hire(WorkerOptions(floor=timedelta(seconds=0.25)))
    before, began = worker.claims, time.monotonic()
    await until(lambda: worker.claims >= before + 4)
    assert time.monotonic() - began > 0.7


async def test_what_was_put_while_the_connection_was_cut_is_found_at_the_next_one(stack: Stack, crew: Crew) -> None:
    worker = await crew.hire()
    claims = worker.claims
    await stack.redis.config_set("notify-keyspace-events", "")
    await stack.queue.put("t", "unheard")
    await stack.redis.client_kill_filter(_type="pubsub")
    await until(lambda: crew.bodies == ["unheard"])
    assert worker.claims > claims


async def test_a_worker_that_stops_finishes_what_it_has(stack: Stack) -> None:
    began, go_on = asyncio.Event(), asyncio.Event()

    async def handle(task: Task, claim: Claim) -> None:
        began.set()
        await go_on.wait()
        await stack.queue.settle(task)

    worker = Worker(stack.store, "t", handle, pace=SLEEPY)
    running = asyncio.create_task(worker.run())
    await stack.queue.put("t", "a")
    await began.wait()
    worker.stop()
    await stack.queue.put("t", "b")
    go_on.set()
    await running
    assert await stack.finish_all() == ["b"]


async def test_a_handler_that_raises_loses_its_lease_and_ends_nobody(stack: Stack, crew: Crew) -> None:
    async def handle(task: Task, claim: Claim) -> None:
        if task.attempts == 1 and task.body == "bad":
            raise ValueError("a fault of the handler")
        await crew._handle(task, claim)

    worker = Worker(stack.store, "t", handle, pace=WorkerOptions(timedelta(seconds=0.3), timedelta(seconds=0.2)))
    running = asyncio.create_task(worker.run())
    for body in ("bad", "good"):
        await stack.queue.put("t", body)
    await until(lambda: crew.bodies == ["good", "bad"])
    worker.stop()
    await running


async def test_who_may_not_subscribe_is_told_why_and_works_by_his_floor(
    stack: Stack, crew: Crew, caplog: pytest.LogCaptureFixture
) -> None:
    await stack.redis.execute_command("ACL", "SETUSER", "deaf", "on", ">secret", "~*", "+@all", "resetchannels")  # type: ignore[no-untyped-call]
    try:
        store = await Store.open(f"redis://deaf:secret@127.0.0.1:{stack.server.place.port}/0")
        worker = await crew.hire(WorkerOptions(floor=timedelta(milliseconds=50)), store=store)
        await stack.queue.put("t", "a")
        await until(lambda: crew.bodies == ["a"])
        assert worker.claims < 50  # it does not spin
        assert any("bell not heard" in record.message and "permission" in record.message for record in caplog.records)
    finally:
        await stack.redis.execute_command("ACL", "DELUSER", "deaf")  # type: ignore[no-untyped-call]


async def test_when_the_keeper_of_the_timer_ends_another_keeps_it_at_once(stack: Stack, crew: Crew) -> None:
    """Not when the bell runs out, which is at the moment of the task that it would then be late for."""
    keeper, other = await crew.hire(), await crew.hire()
    await stack.queue.put("t", "late", due=stack.now() + timedelta(seconds=30))
    await until(lambda: keeper.claims >= 3)
    keeper.stop()
    await until(lambda: other.claims >= 3, within=2)
    assert await stack.redis.get(KEYS["timer"].at(0)) == other.owner
