"""The queue as independent processes use it, and the examples of docs/queue.md."""

import asyncio
import re
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from datetime import timedelta
from textwrap import indent

import pytest

from core.model.clock import Backoff
from core.queue import Attempt, CallFailed, Failed, NewTask, Retry, TaskFilter, Tube, connect
from core.redis.store import Store
from tests.support.paths import ROOT
from tests.support.servers import Server, on_both_servers
from tests.support.stack import HOUR, Stack
from tests.support.waiting import until
from tests.support.workshop import QUICK, SOON, Workshop, echo

MINUTE = timedelta(minutes=1)
GUIDE = ROOT / "docs" / "queue.md"


@pytest.fixture
async def other_process(stack: Stack) -> AsyncIterator[Workshop]:
    """Another process of the same installation."""
    store = await Store.open(stack.server.url)
    opened = Workshop(store)
    yield opened
    await opened.close()
    await store.close()


@on_both_servers
async def test_a_tube_is_created_at_run_time_with_its_options_and_used_at_once(
    stack: Stack, workshop: Workshop, other_process: Workshop
) -> None:
    """By processes that were running before it."""
    done: list[str] = []

    async def handler(attempt: Attempt) -> str:
        done.append(attempt.body)
        if attempt.body == "hopeless":
            raise ValueError
        return attempt.body.upper()

    await other_process.start_worker(handler, concurrency=1)
    tube = f"made at {time.time_ns()}"
    await other_process.start_worker(handler, tube=tube, concurrency=1)
    await workshop.client.tubes.create(Tube(tube, expires=5 * MINUTE, attempts=2, keep=MINUTE, backoff=QUICK))
    assert await workshop.client.call(tube, "rpc", SOON) == "RPC"
    due = stack.now() + timedelta(milliseconds=300)
    late = await workshop.client.put(tube, "deferred", due=due, lane="lane")
    stale = await workshop.client.put(tube, "stale", due=stack.now() + HOUR, expires=stack.now() + HOUR)
    assert (await workshop.client.wait(late, SOON)).answer == "DEFERRED"
    assert (await stack.queue.inspector.peek(stale)).state == "waiting"
    tomorrow = stack.now() + 24 * HOUR
    expiring = await stack.queue.inspector.peek(await workshop.client.put(tube, "expires", due=tomorrow))
    assert expiring.expires
    assert expiring.due
    assert expiring.expires - expiring.due == 5 * 60 * 1000
    hopeless = await workshop.client.put(tube, "hopeless")
    await until(lambda: _is_buried(stack, hopeless))
    assert (await stack.queue.inspector.peek(late)).state == "done"
    assert done == ["rpc", "deferred", "hopeless", "hopeless"]


async def _is_buried(stack: Stack, task_id: str) -> bool:
    return await stack.state(task_id) == "buried"


async def test_a_worker_takes_tasks_of_its_own_tube_only(stack: Stack, workshop: Workshop) -> None:
    served: Counter[str] = Counter()

    async def handler(attempt: Attempt) -> None:
        served[attempt.body] += 1

    for tube in ("one", "two"):
        await workshop.start_worker(handler, tube=tube)
    for tube in ("one", "two", "three"):
        await workshop.client.put_many(tube, [NewTask(tube)] * 20)
    await until(lambda: served.total() == 40)
    assert served == {"one": 20, "two": 20}
    assert (await stack.queue.inspector.stats()).tubes["three"].states.ready == 20


async def test_three_workers_take_two_lanes_in_parallel_and_each_in_order(
    stack: Stack, workshop: Workshop, other_process: Workshop
) -> None:
    """A1 A2 A3 A4 B1 B2: never two of a lane at once."""
    running: set[str] = set()
    most, order = 0, defaultdict(list)
    side_by_side: list[str] = []
    both = asyncio.Event()

    async def handler(attempt: Attempt) -> None:
        nonlocal most
        side_by_side.extend({attempt.task.lane} & running)  # what a handler raises is a retry
        running.add(attempt.task.lane)
        most = max(most, len(running))
        if most == 2:
            both.set()
        await both.wait()
        order[attempt.task.lane].append(attempt.body)
        running.discard(attempt.task.lane)

    for process in (workshop, workshop, other_process):
        await process.start_worker(handler, concurrency=1)
    await workshop.client.put_many("t", [NewTask(body, lane=body[0]) for body in ("A1", "A2", "A3", "A4", "B1", "B2")])
    await until(lambda: sum(map(len, order.values())) == 6)
    assert order == {"A": ["A1", "A2", "A3", "A4"], "B": ["B1", "B2"]}
    assert most == 2
    assert side_by_side == []


async def test_hundreds_of_concurrent_handlers_in_two_workers_keep_the_order_of_lanes(
    stack: Stack, workshop: Workshop, other_process: Workshop
) -> None:
    lanes, concurrency = 400, 250  # more handlers than lanes: without locks some would have a lane's second task
    running: dict[str, set[str]] = {"here": set(), "there": set()}
    order: dict[str, list[str]] = defaultdict(list)
    side_by_side: list[str] = []
    most: dict[str, int] = {}
    full = asyncio.Event()

    def handler(where: str):  # type: ignore[no-untyped-def]
        async def handle(attempt: Attempt) -> None:
            lane = attempt.task.lane
            side_by_side.extend(lane for busy in running.values() if lane in busy)
            running[where].add(lane)
            if sum(map(len, running.values())) == lanes:
                most.update({place: len(busy) for place, busy in running.items()})
                full.set()
            await full.wait()
            await attempt.save("running")
            order[lane].append(attempt.body)
            running[where].discard(lane)

        return handle

    await workshop.start_worker(handler("here"), concurrency=concurrency)
    await other_process.start_worker(handler("there"), concurrency=concurrency)
    await workshop.client.put_many("t", [NewTask(str(n), lane=f"{lane}") for n in range(3) for lane in range(lanes)])
    await until(lambda: sum(map(len, order.values())) == 3 * lanes)
    assert min(most.values()) >= lanes - concurrency
    assert side_by_side == []
    assert set(map(tuple, order.values())) == {("0", "1", "2")}


async def test_the_pauses_between_attempts_double_up_to_a_maximum(stack: Stack, workshop: Workshop) -> None:
    await workshop.client.tubes.create(Tube("t", backoff=Backoff(10 * MINUTE, 15 * MINUTE)))

    async def failing(attempt: Attempt) -> None:
        raise ValueError

    await workshop.start_worker(failing, max_sleep=timedelta(milliseconds=50))
    task_id = await workshop.client.put("t", "")
    for attempt, (least, most) in enumerate([(5, 10), (7.5, 15), (7.5, 15)], 1):
        due = await until(lambda: _due_of_retry(stack, task_id, attempt))  # noqa: B023 - at once
        pause = due / 1000 - stack.now().timestamp()
        assert least * 60 - 5 <= pause <= most * 60
        stack.advance_clock(timedelta(seconds=pause + 1))
        await stack.tick("t")


async def _due_of_retry(stack: Stack, task_id: str, attempts: int) -> int:
    """Return the ms at which the next attempt is due; 0 until this many attempts were made."""
    task = await stack.queue.inspector.peek(task_id)
    return task.due or 0 if (task.state, task.attempts) == ("waiting", attempts) else 0


@on_both_servers
async def test_a_search_reads_only_what_it_finds_and_scans_nothing(stack: Stack) -> None:
    await stack.queue.put_many("t", [NewTask("", user=f"u{n}", tags=["all"], kind=f"k{n % 2}") for n in range(2000)])
    await stack.redis.config_resetstat()
    before = stack.store.pipelines.commands
    (found,) = await stack.queue.inspector.select(TaskFilter(user="u7", kind="k", tag="all", tube="t"))
    assert found.user == "u7"
    assert stack.store.pipelines.commands - before <= 6
    used = {name.removeprefix("cmdstat_") for name in await stack.redis.info("commandstats")}
    assert not used & {"scan", "keys", "zscan", "hscan", "hgetall"}
    await stack.queue.cancel_by(TaskFilter(tag="all"))


@on_both_servers
async def test_processes_that_receive_handle_and_send_messages_share_only_the_queue(stack: Stack) -> None:
    """One scenario serves several networks: a reply leaves by the network of its message, and no process waits for
    another.
    """
    parts = {name: Workshop(await Store.open(stack.server.url)) for name in ("in", "scenario", "vk", "telegram")}
    sent: dict[str, list[str]] = defaultdict(list)

    async def scenario(attempt: Attempt) -> None:
        network, user = attempt.task.kind, attempt.task.user
        await parts["scenario"].client.put(network, f"{attempt.body}, {user}!", user=user, lane=user)

    def sender(network: str):  # type: ignore[no-untyped-def]
        async def send(attempt: Attempt) -> None:
            sent[network].append(attempt.body)

        return send

    for number, network in enumerate(["vk", "telegram", "vk"]):
        await parts["in"].client.put("updates", f"hello {number}", kind=network, user="Anna", lane=f"{network} Anna")
    await parts["in"].close()  # it is gone before the others start
    await parts["scenario"].start_worker(scenario, tube="updates")
    for network in ("vk", "telegram"):
        await parts[network].start_worker(sender(network), tube=network)
    await until(lambda: sum(map(len, sent.values())) == 3)
    assert sent == {"vk": ["hello 0, Anna!", "hello 2, Anna!"], "telegram": ["hello 1, Anna!"]}
    for part in parts.values():
        await part.close()
        await part.client.store.close()


async def test_a_long_task_does_not_delay_short_ones(stack: Stack, workshop: Workshop) -> None:
    """A task with a body of a megabyte runs for several leases; short tasks are answered meanwhile."""
    started, attempts = asyncio.Event(), []
    finish = asyncio.Event()

    async def convert(attempt: Attempt) -> str:
        attempts.append(attempt.task.attempts)
        started.set()
        await finish.wait()
        return await asyncio.to_thread(lambda: str(len(attempt.body)))

    lease = timedelta(seconds=1)
    await workshop.start_worker(convert, tube="media", lease=lease)
    await workshop.start_worker(echo, tube="texts", lease=lease)
    converting = asyncio.create_task(workshop.client.call("media", "x" * 2**20, timedelta(seconds=20)))
    await started.wait()
    end = time.monotonic() + 4 * lease.total_seconds()
    calls = 0
    while time.monotonic() < end:
        assert await workshop.client.call("texts", "ab", SOON) == "AB"
        calls += 1
    finish.set()
    assert await converting == str(2**20)
    assert attempts == [1]
    assert calls > 20


async def test_the_examples_of_the_guide_work_as_written(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    """The first example is run word for word except for the address; the second is compiled."""
    code, second = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    head, _, body = code.replace("redis://127.0.0.1:6379", server.url).partition("async with connect")
    compile(f"async def guide():\n{indent(second, '    ')}", "guide", "exec")
    lines = [f"    {line}" for line in f"async with connect{body}".splitlines()]
    names: dict[str, object] = {"__name__": "guide"}
    exec("\n".join([head, "async def guide():", *lines]), names)
    guide = names["guide"]
    assert callable(guide)
    await asyncio.wait_for(guide(), 20)
    assert capsys.readouterr().out == "HELLO\n"


async def test_a_client_leaves_no_connection_behind(stack: Stack) -> None:
    async def connections() -> int:
        return len(await stack.redis.client_list())

    before = await connections()
    async with connect(stack.server.url) as client:
        task_id = await client.put("t", "")
        assert await connections() > before

    async def are_closed() -> bool:
        return await connections() == before

    await until(are_closed)
    assert await stack.state(task_id) == "ready"


async def test_a_caller_is_notified_of_the_end_of_a_task_and_not_of_its_retries(
    stack: Stack, workshop: Workshop
) -> None:
    async def fails_at_the_second_attempt(attempt: Attempt) -> Retry | Failed:
        return Retry(timedelta(0)) if attempt.task.attempts == 1 else Failed("no")

    await workshop.start_worker(fails_at_the_second_attempt)
    with pytest.raises(CallFailed, match="failed: no"):
        await workshop.client.call("t", "", SOON)
