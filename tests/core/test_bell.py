"""Sleeping workers are woken: by the bell, once per idle period; by time, through one keeper of the timer."""

import asyncio
import time
from datetime import timedelta

import pytest
from redis.asyncio import Redis

from core.keys import KEYS, bell
from core.queue import Claim, Task
from core.store import Store
from core.worker import Pace, Worker
from tests.core.house import House
from tests.servers import on_both_servers
from tests.waiting import until

pytestmark = [on_both_servers, pytest.mark.row("D-06", "K-32")]

BELL = bell(0, "t")
# Longer than any test: whatever wakes a worker here, it is not its floor.
SLEEPY = Pace(floor=timedelta(seconds=50))


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

    def __init__(self, house: House) -> None:
        self.house = house
        self.got: list[tuple[str, float]] = []
        self._workers: list[tuple[Worker, asyncio.Task[None], Store]] = []

    async def hire(self, pace: Pace = SLEEPY, tube: str = "t", store: Store | None = None) -> Worker:
        """A worker with a connection of its own, as in a process of its own; asleep when this comes back."""
        store = store or await Store.open(self.house.server.url)
        worker = Worker(store, tube, self._handle, pace=pace)
        self._workers.append((worker, asyncio.create_task(worker.run()), store))
        # The second claim is that of the subscription.
        await until(lambda: worker.claims >= 2)
        return worker

    async def _handle(self, task: Task, claim: Claim) -> None:
        self.got.append((task.body, time.monotonic()))
        await self.house.queue.settle(task)

    @property
    def bodies(self) -> list[str]:
        return [body for body, _ in self.got]

    async def dismiss(self) -> None:
        for worker, running, store in self._workers:
            worker.stop()
            await running
            await store.close()


@pytest.fixture
async def crew(house: House) -> "Crew":  # type: ignore[misc]
    hired = Crew(house)
    yield hired
    await hired.dismiss()


async def test_the_bell_is_there_only_while_somebody_sleeps(house: House) -> None:
    assert not await house.redis.exists(BELL)
    await house.claim()
    assert 0 < await house.redis.pttl(BELL) <= 60_000
    await house.queue.put("t", "a")
    assert not await house.redis.exists(BELL)
    await house.take()
    assert not await house.redis.exists(BELL)


async def test_the_bell_lives_until_the_next_due_moment(house: House) -> None:
    await house.queue.put("t", "a", due=house.now() + timedelta(seconds=7))
    await house.claim()
    assert 5_000 < await house.redis.pttl(BELL) <= 7_000


async def test_who_has_no_room_does_not_set_the_bell(house: House) -> None:
    await house.claim(limit=0)
    assert not await house.redis.exists(BELL)


async def test_a_thousand_tasks_ring_once(house: House) -> None:
    ears = await Ears(house.redis, BELL).open()
    await house.claim()
    await asyncio.gather(*(house.queue.put("t", str(number)) for number in range(1000)))
    await house.finish_all()
    await until(lambda: ears.events[-1:] == ["set"] or "del" in ears.events)
    assert ears.events.count("del") == 1
    await ears.close()


async def test_work_of_another_tube_does_not_ring(house: House) -> None:
    await house.claim()
    await house.queue.put("u", "a")
    assert await house.redis.exists(BELL)


async def test_what_comes_free_rings(house: House) -> None:
    """The end of a lane's holder, a kick and a promoted task make work takeable as much as a put does."""
    first = await house.queue.put("t", "a", lane="lane")
    await house.queue.put("t", "b", lane="lane")
    (task,) = await house.take()
    await house.claim()
    await house.queue.settle(task)
    assert not await house.redis.exists(BELL)
    await house.finish_all()
    buried = await house.queue.put("t", "c")
    await house.queue.bury(buried)
    await house.claim()
    await house.queue.kick(buried)
    assert not await house.redis.exists(BELL)
    assert first != buried


@pytest.mark.row("K-32")
async def test_a_sleeping_worker_is_woken_at_once(house: House, crew: Crew) -> None:
    await crew.hire()
    put_at = time.monotonic()
    await house.queue.put("t", "a")
    await until(lambda: crew.got)
    assert crew.got[0][1] - put_at < 0.5


async def test_a_worker_with_much_to_do_takes_all_of_it_without_another_bell(house: House, crew: Crew) -> None:
    worker = await crew.hire(Pace(floor=timedelta(seconds=50), tasks=4, entries=4))
    await asyncio.gather(*(house.queue.put("t", str(number)) for number in range(200)))
    await until(lambda: len(crew.got) == 200)
    assert sorted(crew.bodies) == sorted(map(str, range(200)))
    assert worker.claims <= 210


@pytest.mark.row("D-07")
async def test_a_worker_looks_at_a_due_moment_and_not_before(
    house: House, crew: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It wakes earlier, by what a timer may be late: were it not to wait, it would look again and again until then."""
    monkeypatch.setattr("core.worker._TICK", 0.015)
    worker, moments = await crew.hire(), 20
    start = house.now() + timedelta(milliseconds=300)
    for number in range(moments):
        await house.queue.put("t", str(number), due=start + number * timedelta(milliseconds=30))
    await asyncio.sleep(0.1)
    before = worker.claims
    await until(lambda: len(crew.got) == moments)
    assert crew.bodies == [str(number) for number in range(moments)]
    assert worker.claims - before <= 4 * moments


@pytest.mark.row("D-07")
async def test_a_due_moment_wakes_a_worker_although_no_event_is_sent(house: House, crew: Crew) -> None:
    await house.redis.config_set("notify-keyspace-events", "")
    due = house.now() + timedelta(seconds=0.5)
    await house.queue.put("t", "a", due=due)
    await crew.hire()
    await until(lambda: crew.got)
    assert abs((house.now() - due).total_seconds()) < 0.3


@pytest.mark.row("D-07")
async def test_an_earlier_moment_wakes_the_keeper_of_the_timer(house: House, crew: Crew) -> None:
    await house.queue.put("t", "later", due=house.now() + timedelta(seconds=40))
    await crew.hire()
    await crew.hire()
    due = house.now() + timedelta(seconds=0.3)
    await house.queue.put("t", "sooner", due=due)
    await until(lambda: crew.bodies == ["sooner"])
    assert abs((house.now() - due).total_seconds()) < 0.3


async def test_one_of_many_workers_keeps_the_timer(house: House) -> None:
    keepers = [(await house.claim(owner=f"worker {number}", limit=0)).keeper for number in range(5)]
    assert keepers == [True, False, False, False, False]
    assert (await house.claim(owner="worker 0", limit=0)).keeper
    await house.redis.delete("queue:{0}:timer")
    assert (await house.claim(owner="worker 3", limit=0)).keeper


async def test_the_timer_of_a_dead_keeper_runs_out(house: House) -> None:
    await house.claim(owner="dead")
    assert 0 < await house.redis.pttl("queue:{0}:timer") <= 2 * 200


async def test_a_moment_that_is_not_the_earliest_disturbs_nobody(house: House) -> None:
    await house.queue.put("t", "a", due=house.now() + timedelta(seconds=30))
    await house.claim(owner="keeper")
    await house.queue.put("t", "b", due=house.now() + timedelta(seconds=40))
    assert await house.redis.get("queue:{0}:timer") == "keeper"
    await house.queue.put("t", "c", due=house.now() + timedelta(seconds=20))
    assert await house.redis.get("queue:{0}:timer") is None


async def test_without_any_event_work_is_found_within_the_floor(house: House, crew: Crew) -> None:
    await crew.hire(Pace(floor=timedelta(seconds=0.4)))
    await house.redis.config_set("notify-keyspace-events", "")
    put_at = time.monotonic()
    await house.queue.put("t", "a")
    await until(lambda: crew.got)
    assert crew.got[0][1] - put_at < 0.8


async def test_an_idle_worker_asks_once_per_floor(house: House, crew: Crew) -> None:
    worker = await crew.hire(Pace(floor=timedelta(seconds=0.25)))
    before, began = worker.claims, time.monotonic()
    await until(lambda: worker.claims >= before + 4)
    assert time.monotonic() - began > 0.7


async def test_what_was_put_while_the_connection_was_cut_is_found_at_the_next_one(house: House, crew: Crew) -> None:
    worker = await crew.hire()
    claims = worker.claims
    await house.redis.config_set("notify-keyspace-events", "")
    await house.queue.put("t", "unheard")
    await house.redis.client_kill_filter(_type="pubsub")
    await until(lambda: crew.bodies == ["unheard"])
    assert worker.claims > claims


async def test_a_worker_that_stops_finishes_what_it_has(house: House) -> None:
    began, go_on = asyncio.Event(), asyncio.Event()

    async def handle(task: Task, claim: Claim) -> None:
        began.set()
        await go_on.wait()
        await house.queue.settle(task)

    worker = Worker(house.store, "t", handle, pace=SLEEPY)
    running = asyncio.create_task(worker.run())
    await house.queue.put("t", "a")
    await began.wait()
    worker.stop()
    await house.queue.put("t", "b")
    go_on.set()
    await running
    assert await house.finish_all() == ["b"]


async def test_a_handler_that_raises_loses_its_lease_and_ends_nobody(house: House, crew: Crew) -> None:
    async def handle(task: Task, claim: Claim) -> None:
        if task.attempts == 1 and task.body == "bad":
            raise ValueError("a fault of the handler")
        await crew._handle(task, claim)

    worker = Worker(house.store, "t", handle, pace=Pace(timedelta(seconds=0.3), timedelta(seconds=0.2)))
    running = asyncio.create_task(worker.run())
    for body in ("bad", "good"):
        await house.queue.put("t", body)
    await until(lambda: crew.bodies == ["good", "bad"])
    worker.stop()
    await running


async def test_who_may_not_subscribe_is_told_why_and_works_by_his_floor(
    house: House, crew: Crew, caplog: pytest.LogCaptureFixture
) -> None:
    await house.redis.execute_command("ACL", "SETUSER", "deaf", "on", ">secret", "~*", "+@all", "resetchannels")  # type: ignore[no-untyped-call]
    try:
        store = await Store.open(f"redis://deaf:secret@127.0.0.1:{house.server.place.port}/0")
        worker = await crew.hire(Pace(floor=timedelta(milliseconds=50)), store=store)
        await house.queue.put("t", "a")
        await until(lambda: crew.bodies == ["a"])
        assert worker.claims < 50  # it does not spin
        assert any("bell not heard" in record.message and "permission" in record.message for record in caplog.records)
    finally:
        await house.redis.execute_command("ACL", "DELUSER", "deaf")  # type: ignore[no-untyped-call]


async def test_when_the_keeper_of_the_timer_ends_another_keeps_it_at_once(house: House, crew: Crew) -> None:
    """Not when the bell runs out, which is at the moment of the task that it would then be late for."""
    keeper, other = await crew.hire(), await crew.hire()
    await house.queue.put("t", "late", due=house.now() + timedelta(seconds=30))
    await until(lambda: keeper.claims >= 3)
    keeper.stop()
    await until(lambda: other.claims >= 3, within=2)
    assert await house.redis.get(KEYS["timer"].at(0)) == other.owner
