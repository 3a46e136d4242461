"""Sleeping workers are woken by the bell, once per idle period, and by time, through one keeper of the timer."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial

import pytest
from redis.asyncio import Redis

from core.model.clock import to_ms
from core.queue import Claim, NewTask, Settlement, Task, Tube, Tubes, Worker, WorkerOptions
from core.queue.task import ClaimRequest
from core.queue.workers.claim_schedule import Timer, idle_shards
from core.redis.keys import KEYS, bell
from core.redis.store import Store
from tests.support.servers import on_both_servers
from tests.support.stack import HOUR, LEASE, Stack, order, person
from tests.support.waiting import stays, until

pytestmark = on_both_servers

BELL, TIMER = bell(0, "t"), KEYS["timer"].at(0)
# Longer than any test, so that no worker wakes by itself.
SLEEPY = WorkerOptions(max_sleep=timedelta(seconds=50))


class KeyEvents:
    """Records the keyspace events of one key."""

    def __init__(self, redis: Redis, key: str) -> None:
        self._pubsub = redis.pubsub()
        self._channel = f"__keyspace@0__:{key}"
        self.events: list[str] = []

    async def open(self) -> "KeyEvents":
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


class Workers:
    """Workers that record which task they got when."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self.got: list[tuple[str, float]] = []
        self._workers: list[tuple[Worker, asyncio.Task[None], Store]] = []

    async def start(self, options: WorkerOptions = SLEEPY, tube: str = "t", store: Store | None = None) -> Worker:
        """Start a worker with its own connection, as in another process; it sleeps when this returns."""
        store = store or await Store.open(self.stack.server.url)
        worker = Worker(store, tube, self._handle, options=options)
        self._workers.append((worker, asyncio.create_task(worker.run()), store))
        # A worker claims a second time when its subscription is confirmed.
        await until(lambda: worker.claims >= 2)
        return worker

    async def _handle(self, task: Task, claim: Claim) -> None:
        self.got.append((task.body, time.monotonic()))
        await self.stack.queue.settle(task)

    @property
    def bodies(self) -> list[str]:
        return [body for body, _ in self.got]

    async def close(self) -> None:
        for worker, running, store in self._workers:
            worker.stop()
            await running
            await store.close()


async def commands(stack: Stack, name: str) -> int:
    """Return how often the server has run a command."""
    found = (await stack.redis.info("commandstats")).get(f"cmdstat_{name}", {"calls": 0})
    return int(found["calls"])


@pytest.fixture
async def workers(stack: Stack) -> "Workers":  # type: ignore[misc]
    opened = Workers(stack)
    yield opened
    await opened.close()


async def test_the_bell_exists_only_while_a_worker_sleeps(stack: Stack) -> None:
    assert not await stack.redis.exists(BELL)
    await stack.claim()
    assert 0 < await stack.redis.pttl(BELL) <= 600_000
    await stack.queue.put("t", NewTask("a"))
    assert not await stack.redis.exists(BELL)
    await stack.take(limit=1)
    assert not await stack.redis.exists(BELL), "it may have room for more"


async def test_a_claim_that_leaves_nothing_and_has_room_sets_the_bell(stack: Stack) -> None:
    """So that the worker need not claim again before it sleeps."""
    for count in (1, 2):
        await stack.queue.put_many("t", [NewTask("a")] * 2)
        await stack.redis.delete(BELL)
        assert len((await stack.claim(limit=count)).tasks) == count
        assert not await stack.redis.exists(BELL)
        assert len((await stack.claim(limit=5)).tasks) == 2 - count
        assert await stack.redis.exists(BELL)
    await stack.queue.put_many("t", [NewTask("a")] * 2)
    assert len((await stack.claim(limit=5)).tasks) == 2
    assert await stack.redis.exists(BELL)


async def test_the_next_due_task_wakes_the_keeper_of_the_timer_and_not_every_sleeper(stack: Stack) -> None:
    await stack.queue.put("t", NewTask("a", due=stack.now() + timedelta(seconds=7)))
    await stack.claim()
    assert await stack.redis.pttl(BELL) > 7_000


async def test_a_worker_without_room_does_not_set_the_bell(stack: Stack) -> None:
    await stack.claim(limit=0)
    assert not await stack.redis.exists(BELL)


async def test_a_thousand_puts_ring_the_bell_once(stack: Stack) -> None:
    key_events = await KeyEvents(stack.redis, BELL).open()
    await stack.claim()
    await asyncio.gather(*(stack.queue.put("t", NewTask(str(number))) for number in range(1000)))
    await stack.finish_all()
    await until(lambda: key_events.events[-1:] == ["set"] or "del" in key_events.events)
    assert key_events.events.count("del") == 1
    await key_events.close()


async def test_a_task_of_another_tube_does_not_ring_the_bell(stack: Stack) -> None:
    await stack.claim()
    await stack.queue.put("u", NewTask("a"))
    assert await stack.redis.exists(BELL)


async def test_a_settled_lane_and_a_kicked_task_ring_the_bell(stack: Stack) -> None:
    """The end of a lane's first task and a kick make a task ready as a put does."""
    first = await stack.queue.put("t", NewTask("a", lane="lane"))
    await stack.queue.put("t", NewTask("b", lane="lane"))
    (task,) = await stack.take()
    await stack.claim()
    await stack.queue.settle(task)
    assert not await stack.redis.exists(BELL)
    await stack.finish_all()
    buried = await stack.queue.put("t", NewTask("c"))
    await stack.queue.bury(buried)
    await stack.claim()
    await stack.queue.kick(buried)
    assert not await stack.redis.exists(BELL)
    assert first != buried


async def test_a_sleeping_worker_is_woken_at_once(stack: Stack, workers: Workers) -> None:
    await workers.start()
    await stack.queue.put("t", NewTask("a"))
    await until(lambda: workers.got, within=40)  # it would sleep for 50 s


async def test_a_worker_with_room_claims_once_for_a_task(stack: Stack) -> None:
    async def handle(task: Task, claim: Claim) -> Settlement:
        return Settlement()

    worker = Worker(stack.store, "t", handle, options=SLEEPY)
    running = asyncio.create_task(worker.run())
    await until(lambda: worker.claims >= 2)
    before = worker.claims
    for _ in range(8):
        task = await stack.queue.put("t", NewTask("a"))
        await until(partial(has_ended, stack, task))
    assert worker.claims - before <= 8 + 2
    worker.stop()
    await running


async def test_a_worker_goes_on_in_the_pace_of_its_tube(stack: Stack) -> None:
    """The first claim gets fewer tasks than there are, and must learn when the pace allows the next."""
    got: list[str] = []

    async def handle(task: Task, claim: Claim) -> Settlement:
        got.append(task.body)
        return Settlement()

    await Tubes(stack.store).create(Tube("t", pace=20))
    for number in range(12):
        await stack.queue.put("t", NewTask(str(number)))
    worker = Worker(stack.store, "t", handle, options=SLEEPY)
    running = asyncio.create_task(worker.run())
    await until(lambda: len(got) == 12, within=20)  # it would sleep for 50 s
    worker.stop()
    await running


async def has_ended(stack: Stack, task: str) -> bool:
    return not await stack.redis.exists(KEYS["task"].at(0, task.partition(".")[2]))


async def test_a_busy_worker_takes_everything_without_another_bell(stack: Stack, workers: Workers) -> None:
    worker = await workers.start(WorkerOptions(max_sleep=timedelta(seconds=50), max_tasks=4, max_entries=4))
    await asyncio.gather(*(stack.queue.put("t", NewTask(str(number))) for number in range(200)))
    await until(lambda: len(workers.got) == 200)
    assert sorted(workers.bodies) == sorted(map(str, range(200)))
    assert worker.claims <= 210


async def test_a_worker_claims_when_a_task_is_due_and_not_before(
    stack: Stack, workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It wakes early by the resolution of timers; if it did not wait out the rest, it would claim again and again."""
    monkeypatch.setattr("core.queue.workers.worker._TIMER_RESOLUTION", 0.015)
    worker, moments = await workers.start(), 20
    start = stack.now() + timedelta(seconds=1.5)
    for number in range(moments):
        await stack.queue.put("t", NewTask(str(number), due=start + number * timedelta(milliseconds=30)))
    await stays(lambda: not workers.got, during=0.1)
    before = worker.claims
    await until(lambda: len(workers.got) == moments)
    assert workers.bodies == [str(number) for number in range(moments)]
    assert worker.claims - before <= 4 * moments


async def test_a_worker_wakes_for_a_due_task_although_no_event_is_sent(stack: Stack, workers: Workers) -> None:
    await stack.redis.config_set("notify-keyspace-events", "")
    due = stack.now() + timedelta(seconds=0.5)
    await stack.queue.put("t", NewTask("a", due=due))
    await workers.start()
    await until(lambda: workers.got)
    assert -0.01 < (stack.now() - due).total_seconds() < 10, "milliseconds on an idle machine"


async def test_a_task_that_is_due_earlier_wakes_the_keeper_of_the_timer(stack: Stack, workers: Workers) -> None:
    await stack.queue.put("t", NewTask("later", due=stack.now() + timedelta(seconds=40)))
    await workers.start()
    await workers.start()
    due = stack.now() + timedelta(seconds=0.3)
    await stack.queue.put("t", NewTask("sooner", due=due))
    await until(lambda: workers.bodies == ["sooner"])
    assert -0.01 < (stack.now() - due).total_seconds() < 10, "milliseconds on an idle machine"


async def test_a_task_that_is_due_earlier_is_claimed_although_the_keeper_of_the_timer_has_died(
    stack: Stack, workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others look at different times: here as early as they may."""
    monkeypatch.setattr("core.queue.workers.worker.random.uniform", lambda earliest, latest: earliest)
    await stack.redis.set(TIMER, "dead -1", px=120_000)
    await workers.start()
    await stack.queue.put("t", NewTask("a", due=stack.now() + timedelta(seconds=0.1)))
    await until(lambda: workers.bodies == ["a"], within=40)  # it would sleep for 50 s


async def test_one_of_many_workers_keeps_the_timer(stack: Stack) -> None:
    keepers = [(await stack.claim(owner=f"worker {number}", limit=0)).keeper for number in range(5)]
    assert keepers == [True, False, False, False, False]
    assert (await stack.claim(owner="worker 0", limit=0)).keeper
    await stack.redis.delete("queue:{0}:timer")
    assert (await stack.claim(owner="worker 3", limit=0)).keeper


async def test_the_timer_of_a_dead_keeper_expires(stack: Stack) -> None:
    await stack.claim(owner="dead")
    lifetime = 20 * 200
    assert 0 < await stack.redis.pttl(TIMER) <= lifetime
    for left, renewed in ((lifetime * 3 // 4, False), (lifetime // 4, True)):
        await stack.redis.pexpire(TIMER, left)
        await stack.claim(owner="dead")
        assert (await stack.redis.pttl(TIMER) > left) == renewed, "each renewal is an event for all workers"


async def test_a_task_that_is_not_the_earliest_due_leaves_the_timer_alone(stack: Stack) -> None:
    await stack.queue.put("t", NewTask("a", due=stack.now() + timedelta(seconds=30)))
    await stack.claim(owner="keeper")
    await stack.queue.put("t", NewTask("b", due=stack.now() + timedelta(seconds=40)))
    assert str(await stack.redis.get("queue:{0}:timer")).startswith("keeper ")
    await stack.queue.put("t", NewTask("c", due=stack.now() + timedelta(seconds=20)))
    assert await stack.redis.get("queue:{0}:timer") is None


async def expiring(stack: Stack, worker: str) -> None:
    await stack.queue.put("t", NewTask("expires", expires=stack.now() + timedelta(seconds=30)))


async def delivered(stack: Stack, worker: str) -> None:
    await stack.deliveries.enqueue(order(person(1), expires_at=stack.now() + timedelta(seconds=30)))


async def leased(stack: Stack, worker: str) -> None:
    await stack.queue.put("t", NewTask("taken"))
    assert len((await stack.claim(owner=worker)).tasks) == 1


@pytest.mark.parametrize("begin", [expiring, delivered, leased])
async def test_the_keeper_of_the_timer_knows_of_each_expiry_and_lease(
    stack: Stack, begin: Callable[[Stack, str], Awaitable[None]]
) -> None:
    """Whoever causes it: the keeper is woken, or the worker that claims keeps the timer from now on."""
    assert (await stack.claim(owner="keeper", limit=0)).next_at == -1
    await begin(stack, "another")
    known = str(await stack.redis.get(TIMER) or "")
    assert known in ("", f"another {(await stack.claim(owner='another', limit=0)).next_at}")


@pytest.mark.parametrize("owner", ["keeper", "another"])
async def test_a_worker_that_claims_takes_the_timer_from_a_keeper_that_should_have_claimed(
    stack: Stack, owner: str
) -> None:
    await stack.queue.put("t", NewTask("a", due=stack.now() + timedelta(seconds=30)))
    assert (await stack.claim(owner="keeper", limit=0)).keeper
    assert (await stack.claim(owner=owner, limit=0)).keeper == (owner == "keeper"), "it still waits"
    stack.advance_clock(timedelta(seconds=31))
    assert (await stack.claim(owner=owner, limit=0)).keeper
    assert await stack.finish_all() == ["a"]


async def test_without_any_event_a_task_is_found_within_max_sleep(stack: Stack, workers: Workers) -> None:
    await workers.start(WorkerOptions(max_sleep=timedelta(seconds=0.4)))
    await stack.redis.config_set("notify-keyspace-events", "")
    await stack.queue.put("t", NewTask("a"))
    await until(lambda: workers.got)


async def test_a_shard_rests_while_its_bell_and_its_timer_exist(stack: Stack) -> None:
    await stack.queue.put("u", NewTask("later", due=stack.now() + timedelta(seconds=30)))

    async def claim(account: str = "") -> Claim:
        return await stack.queue.claim(0, ClaimRequest("t", "a", 1, LEASE, HOUR, account))

    async def idle(tube: str = "t") -> dict[int, Timer]:
        return await idle_shards(stack.store, tube, [0])

    assert await idle() == {}
    next_at = (await claim()).next_at
    assert await idle() == {0: Timer("a", next_at)}
    assert await idle("u") == {}, "no worker of u sleeps"
    await stack.redis.delete(KEYS["timer"].at(0))
    assert await idle() == {}, "the keeper has died"
    await claim()
    await stack.queue.put("t", NewTask("now"))
    assert await idle() == {}
    await stack.finish_all()
    await stack.queue.throttle("t", "account:x", timedelta(seconds=5))
    await claim("x")
    assert 0 < await stack.redis.pttl(BELL) <= 5000, "then its account may claim, whoever knows of it"


async def test_a_claim_that_leaves_work_is_followed_by_another_and_what_is_to_be_dropped_wakes_nobody(
    stack: Stack,
) -> None:
    await Tubes(stack.store).create(Tube("t", keep=HOUR))
    await stack.queue.put_many("t", [NewTask("a", due=stack.now() + HOUR)] * 101)
    stack.advance_clock(HOUR)
    claim = await stack.claim("u")
    assert claim.next_at == claim.now
    assert not await stack.redis.exists(bell(0, "u")), "not every task of the shard was looked at"
    assert len(await stack.finish_all()) == 101
    stack.advance_clock(2 * HOUR)
    claim = await stack.claim("u")
    assert 0 < claim.next_at - claim.now < 1000
    assert await stack.redis.pttl(bell(0, "u")) > 1000
    assert (await stack.claim("u")).next_at == -1


async def test_an_idle_worker_claims_nothing(stack: Stack, workers: Workers) -> None:
    quick = WorkerOptions(max_sleep=timedelta(seconds=0.5))
    keeper = Worker(stack.store, "other", workers._handle, options=quick)
    keeping = asyncio.create_task(keeper.run())
    await until(lambda: keeper.claims >= 2)
    idle = await workers.start(quick)
    kept, before, looks = keeper.claims, idle.claims, await commands(stack, "mget")

    async def have_looked() -> bool:
        return await commands(stack, "mget") >= looks + 4

    await until(have_looked)
    assert (idle.claims, keeper.claims) == (before, kept)
    assert str(await stack.redis.get(TIMER)).startswith(keeper.owner)
    await stack.redis.config_set("notify-keyspace-events", "")
    await stack.queue.put("t", NewTask("without an event"))
    await until(lambda: workers.bodies == ["without an event"])
    keeping.cancel()
    await asyncio.wait([keeping])
    due = stack.now() + timedelta(seconds=0.3)
    await stack.queue.put("t", NewTask("without a keeper", due=due))
    await stack.redis.set(KEYS["timer"].at(0), f"lost {to_ms(due)}", px=120_000)
    await until(lambda: workers.bodies[1:] == ["without a keeper"])


async def test_the_keeper_of_the_timer_claims_now_and_then_whatever_it_knows(
    stack: Stack, workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the timer does not expire, which would wake all workers."""
    monkeypatch.setattr("core.queue.workers.worker._SELDOM", 2)
    key_events = await KeyEvents(stack.redis, TIMER).open()
    worker = await workers.start(WorkerOptions(max_sleep=timedelta(seconds=0.5)))
    before = worker.claims
    await until(lambda: worker.claims >= before + 2)
    assert "expired" not in key_events.events
    await key_events.close()


async def test_a_task_put_while_the_subscription_was_cut_is_found_afterwards(stack: Stack, workers: Workers) -> None:
    worker = await workers.start()
    claims = worker.claims
    await stack.redis.config_set("notify-keyspace-events", "")
    await stack.queue.put("t", NewTask("put meanwhile"))
    await stack.redis.client_kill_filter(_type="pubsub")
    await until(lambda: workers.bodies == ["put meanwhile"])
    assert worker.claims > claims


async def test_a_stopping_worker_finishes_its_task_and_claims_no_other(stack: Stack) -> None:
    began, go_on = asyncio.Event(), asyncio.Event()

    async def handle(task: Task, claim: Claim) -> None:
        began.set()
        await go_on.wait()
        await stack.queue.settle(task)

    worker = Worker(stack.store, "t", handle, options=SLEEPY)
    running = asyncio.create_task(worker.run())
    await stack.queue.put("t", NewTask("a"))
    await began.wait()
    worker.stop()
    await stack.queue.put("t", NewTask("b"))
    go_on.set()
    await running
    assert await stack.finish_all() == ["b"]


async def test_a_task_whose_handler_raised_is_claimed_again_after_its_lease(stack: Stack, workers: Workers) -> None:
    async def handle(task: Task, claim: Claim) -> None:
        if task.attempts == 1 and task.body == "bad":
            raise ValueError("raised by the handler")
        await workers._handle(task, claim)

    worker = Worker(stack.store, "t", handle, options=WorkerOptions(timedelta(seconds=0.3), timedelta(seconds=0.2)))
    running = asyncio.create_task(worker.run())
    for body in ("bad", "good"):
        await stack.queue.put("t", NewTask(body))
    await until(lambda: workers.bodies == ["good", "bad"])
    worker.stop()
    await running


async def test_a_worker_without_permission_to_subscribe_logs_why_and_polls_by_max_sleep(
    stack: Stack, workers: Workers, caplog: pytest.LogCaptureFixture
) -> None:
    await stack.redis.execute_command("ACL", "SETUSER", "no-channels", "on", ">secret", "~*", "+@all", "resetchannels")  # type: ignore[no-untyped-call]
    try:
        store = await Store.open(f"redis://no-channels:secret@127.0.0.1:{stack.server.place.port}/0")
        worker = await workers.start(WorkerOptions(max_sleep=timedelta(milliseconds=50)), store=store)
        await stack.queue.put("t", NewTask("a"))
        await until(lambda: workers.bodies == ["a"])
        assert worker.claims < 50  # it does not spin
        assert any(
            "no keyspace events" in record.message and "permission" in record.message for record in caplog.records
        )
    finally:
        await stack.redis.execute_command("ACL", "DELUSER", "no-channels")  # type: ignore[no-untyped-call]


async def test_when_the_keeper_of_the_timer_stops_another_takes_over_at_once(stack: Stack, workers: Workers) -> None:
    """Not when the bell expires: that is when the task is due, so it would be late."""
    keeper, other = await workers.start(), await workers.start()
    await stack.queue.put("t", NewTask("late", due=stack.now() + timedelta(seconds=30)))
    await until(lambda: keeper.claims >= 3)
    keeper.stop()
    await until(lambda: other.claims >= 3)
    assert str(await stack.redis.get(KEYS["timer"].at(0))).startswith(other.owner)
