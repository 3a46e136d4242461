"""The queue as several processes see it that know nothing of each other."""

import asyncio
import re
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from core.model.backoff import Backoff
from core.queue.client import Attempt, CallFailed, Failed, QueueClient, Retry, Tube
from core.queue.queue import NewTask, TaskFilter
from core.redis.store import Store
from tests.support.servers import Server, on_both_servers
from tests.support.stack import HOUR, Stack
from tests.support.waiting import until
from tests.support.workshop import QUICK, SOON, Shop, echo

MINUTE = timedelta(minutes=1)
GUIDE = Path(__file__).parents[2] / "docs" / "queue.md"


@pytest.fixture
async def elsewhere(stack: Stack) -> AsyncIterator[Shop]:
    """Another process of the same installation."""
    store = await Store.open(stack.server.url)
    opened = Shop(store)
    yield opened
    await opened.end()
    await store.close()


@on_both_servers
@pytest.mark.row("K-01")
async def test_a_tube_is_created_at_run_time_with_what_is_wanted_and_used_at_once(
    stack: Stack, shop: Shop, elsewhere: Shop
) -> None:
    """By processes that were running before."""
    done: list[str] = []

    async def handler(job: Attempt) -> str:
        done.append(job.body)
        if job.body == "hopeless":
            raise ValueError
        return job.body.upper()

    await elsewhere.open(handler, concurrency=1)
    tube = f"made at {time.time_ns()}"
    await elsewhere.open(handler, tube=tube, concurrency=1)
    await shop.work.tubes.create(Tube(tube, expires=5 * MINUTE, attempts=2, keep=MINUTE, backoff=QUICK))
    assert await shop.work.call(tube, "rpc", SOON) == "RPC"
    due = stack.now() + timedelta(milliseconds=300)
    late = await shop.work.put(tube, "deferred", due=due, lane="lane")
    stale = await shop.work.put(tube, "stale", due=stack.now() + HOUR, expires=stack.now() + HOUR)
    assert (await shop.work.wait(late, SOON)).answer == "DEFERRED"
    told = await stack.queue.peek(stale)
    assert told["state"] == "waiting"
    tomorrow = stack.now() + 24 * HOUR
    expiring = await stack.queue.peek(await shop.work.put(tube, "expires", due=tomorrow))
    assert expiring["expires"] - expiring["due"] == 5 * 60 * 1000
    hopeless = await shop.work.put(tube, "hopeless")
    await until(lambda: _is_buried(stack, hopeless))
    assert (await stack.queue.peek(late))["state"] == "done"
    assert done == ["rpc", "deferred", "hopeless", "hopeless"]


async def _is_buried(stack: Stack, task_id: str) -> bool:
    return await stack.state(task_id) == "buried"


@pytest.mark.row("K-05")
async def test_a_process_takes_from_the_tubes_it_names_and_from_no_other(stack: Stack, shop: Shop) -> None:
    served: Counter[str] = Counter()

    async def handler(job: Attempt) -> None:
        served[job.body] += 1

    for tube in ("one", "two"):
        await shop.open(handler, tube=tube)
    for tube in ("one", "two", "three"):
        await shop.work.put_many(tube, [NewTask(tube)] * 20)
    await until(lambda: served.total() == 40)
    assert served == {"one": 20, "two": 20}
    assert (await stack.queue.stats())["tubes"]["three"]["states"]["ready"] == 20


@pytest.mark.row("K-12")
async def test_three_workers_and_two_lanes(stack: Stack, shop: Shop, elsewhere: Shop) -> None:
    """A1 A2 A3 A4 B1 B2: never two of a lane at once, in their order; both lanes side by side."""
    at_work: set[str] = set()
    most, order = 0, defaultdict(list)
    side_by_side: list[str] = []
    both = asyncio.Event()

    async def handler(job: Attempt) -> None:
        nonlocal most
        side_by_side.extend({job.task.lane} & at_work)  # what a handler raises is a retry
        at_work.add(job.task.lane)
        most = max(most, len(at_work))
        if most == 2:
            both.set()
        await both.wait()
        order[job.task.lane].append(job.body)
        at_work.discard(job.task.lane)

    for one in (shop, shop, elsewhere):
        await one.open(handler, concurrency=1)
    await shop.work.put_many("t", [NewTask(body, lane=body[0]) for body in ("A1", "A2", "A3", "A4", "B1", "B2")])
    await until(lambda: sum(map(len, order.values())) == 6)
    assert order == {"A": ["A1", "A2", "A3", "A4"], "B": ["B1", "B2"]}
    assert most == 2
    assert side_by_side == []


@pytest.mark.row("K-13")
async def test_hundreds_of_handlers_are_at_work_at_once_in_each_worker_and_keep_the_lanes(
    stack: Stack, shop: Shop, elsewhere: Shop
) -> None:
    lanes, many = 400, 250  # more handlers than lanes: some would have a lane's second task
    at_work: dict[str, set[str]] = {"here": set(), "there": set()}
    order: dict[str, list[str]] = defaultdict(list)
    side_by_side: list[str] = []
    most: dict[str, int] = {}
    full = asyncio.Event()

    def handler(where: str):  # type: ignore[no-untyped-def]
        async def handle(job: Attempt) -> None:
            lane = job.task.lane
            side_by_side.extend(lane for busy in at_work.values() if lane in busy)
            at_work[where].add(lane)
            if sum(map(len, at_work.values())) == lanes:
                most.update({place: len(busy) for place, busy in at_work.items()})
                full.set()
            await full.wait()
            await job.save("at work")
            order[lane].append(job.body)
            at_work[where].discard(lane)

        return handle

    await shop.open(handler("here"), concurrency=many)
    await elsewhere.open(handler("there"), concurrency=many)
    await shop.work.put_many("t", [NewTask(str(n), lane=f"{lane}") for n in range(3) for lane in range(lanes)])
    await until(lambda: sum(map(len, order.values())) == 3 * lanes, within=20)
    assert min(most.values()) >= lanes - many
    assert side_by_side == []
    assert set(map(tuple, order.values())) == {("0", "1", "2")}


@pytest.mark.row("K-25")
async def test_the_pauses_between_attempts_double_and_have_a_longest(stack: Stack, shop: Shop) -> None:
    await shop.work.tubes.create(Tube("t", backoff=Backoff(10 * MINUTE, 15 * MINUTE)))

    async def failing(job: Attempt) -> None:
        raise ValueError

    await shop.open(failing, floor=timedelta(milliseconds=50))
    task_id = await shop.work.put("t", "")
    for attempt, (least, most) in enumerate([(5, 10), (7.5, 15), (7.5, 15)], 1):
        told: dict[str, int] = await until(lambda: _backing_off(stack, task_id, attempt))  # noqa: B023 - at once
        pause = told["due"] / 1000 - stack.now().timestamp()
        assert least * 60 - 5 <= pause <= most * 60
        stack.passes(timedelta(seconds=pause + 1))
        await stack.tick("t")


async def _backing_off(stack: Stack, task_id: str, attempts: int) -> dict[str, int]:
    told = await stack.queue.peek(task_id)
    return told if (told["state"], told.get("attempts")) == ("waiting", attempts) else {}


@on_both_servers
@pytest.mark.row("K-10")
async def test_a_look_up_asks_for_what_it_finds_and_scans_nothing(stack: Stack) -> None:
    await stack.queue.put_many("t", [NewTask("", user=f"u{n}", tags=["all"], kind=f"k{n % 2}") for n in range(2000)])
    await stack.redis.config_resetstat()
    before = stack.store.pipeline.commands
    (found,) = await stack.queue.select(TaskFilter(user="u7", kind="k", tag="all", tube="t"))
    assert found["user"] == "u7"
    assert stack.store.pipeline.commands - before <= 6
    used = {name.removeprefix("cmdstat_") for name in await stack.redis.info("commandstats")}
    assert not used & {"scan", "keys", "zscan", "hscan", "hgetall"}
    await stack.queue.cancel_by(TaskFilter(tag="all"))


@on_both_servers
@pytest.mark.row("K-38")
async def test_in_processing_and_out_know_only_the_queue(stack: Stack) -> None:
    """One scenario serves several networks: what came in from one goes out by the same, and each part may be away."""
    parts = {name: Shop(await Store.open(stack.server.url)) for name in ("in", "scenario", "vk", "telegram")}
    sent: dict[str, list[str]] = defaultdict(list)

    async def scenario(job: Attempt) -> None:
        network, user = job.task.kind, job.task.user
        await parts["scenario"].work.put(network, f"{job.body}, {user}!", user=user, lane=user)

    def out(network: str):  # type: ignore[no-untyped-def]
        async def send(job: Attempt) -> None:
            sent[network].append(job.body)

        return send

    for number, network in enumerate(["vk", "telegram", "vk"]):
        await parts["in"].work.put("updates", f"hello {number}", kind=network, user="Anna", lane=f"{network} Anna")
    await parts["in"].end()  # it is away while the others begin
    await parts["scenario"].open(scenario, tube="updates")
    for network in ("vk", "telegram"):
        await parts[network].open(out(network), tube=network)
    await until(lambda: sum(map(len, sent.values())) == 3)
    assert sent == {"vk": ["hello 0, Anna!", "hello 2, Anna!"], "telegram": ["hello 1, Anna!"]}
    for shop in parts.values():
        await shop.end()
        await shop.work._store.close()


@pytest.mark.row("K-42")
async def test_a_heavy_job_goes_through_the_same_queue_and_holds_nobody_up(stack: Stack, shop: Shop) -> None:
    """A megabyte of it, worked at in a thread for several leases; texts flow meanwhile."""
    began, attempts = asyncio.Event(), []
    over = asyncio.Event()

    async def convert(job: Attempt) -> str:
        attempts.append(job.task.attempts)
        began.set()
        await over.wait()
        return await asyncio.to_thread(lambda: str(len(job.body)))

    lease = timedelta(milliseconds=300)
    await shop.open(convert, tube="media", lease=lease)
    await shop.open(echo, tube="texts", lease=lease)
    converting = asyncio.create_task(shop.work.call("media", "x" * 2**20, timedelta(seconds=20)))
    await began.wait()
    until_then = time.monotonic() + 4 * lease.total_seconds()
    calls = 0
    while time.monotonic() < until_then:
        assert await shop.work.call("texts", "ab", SOON) == "AB"
        calls += 1
    over.set()
    assert await converting == str(2**20)
    assert attempts == [1]
    assert calls > 20


@pytest.mark.row("K-39")
async def test_the_guide_works_as_it_is_written(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    """Its first example, word for word but for the address."""
    (code, *_) = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    head, _, body = code.replace("redis://127.0.0.1:6379", server.url).partition("async with opened")
    lines = [f"    {line}" for line in f"async with opened{body}".splitlines()]
    names: dict[str, object] = {"__name__": "guide"}
    exec("\n".join([head, "async def guide():", *lines]), names)
    guide = names["guide"]
    assert callable(guide)
    await asyncio.wait_for(guide(), 20)
    assert capsys.readouterr().out == "HELLO\n"


@pytest.mark.row("K-36", "K-25")
async def test_a_producer_hears_of_the_end_only_not_of_the_attempts_before(stack: Stack, shop: Shop) -> None:
    async def second_time(job: Attempt) -> Retry | Failed:
        return Retry(timedelta(0)) if job.task.attempts == 1 else Failed("no")

    await shop.open(second_time)
    with pytest.raises(CallFailed, match="failed: no"):
        await shop.work.call("t", "", SOON)
    assert isinstance(shop.work, QueueClient)
