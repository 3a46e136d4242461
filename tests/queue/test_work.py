"""The small API: workers, calls, waiting, graceful ends."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from core.errors import Invalid, NotFound
from core.retry import Backoff
from core.store import Store
from core.words import TaskState
from core.work import Bury, Done, Failed, Handler, Job, Result, Retry, Tube, Unanswered, Work
from core.worker import Worker
from tests.core.house import FLOOR, HOUR, House
from tests.servers import Server, on_both_servers
from tests.waiting import until

SOON = timedelta(seconds=5)
QUICK = Backoff(timedelta(milliseconds=5), timedelta(milliseconds=5))


class Shop:
    """A `Work` and its workers, ended with the test."""

    def __init__(self, store: Store, client: str = "") -> None:
        self.work = Work(store, client)
        self.workers: dict[Worker, asyncio.Task[None]] = {}

    async def open(self, handler: Handler, tube: str = "t", **options: object) -> Worker:
        worker = self.work.worker(tube, handler, **{"floor": FLOOR, **options})  # type: ignore[arg-type]
        self.workers[worker] = asyncio.create_task(worker.run())
        await until(lambda: worker.claims > 0)
        return worker

    async def close(self, worker: Worker) -> None:
        worker.stop()
        await asyncio.wait_for(self.workers.pop(worker), 10)

    async def end(self) -> None:
        for worker in list(self.workers):
            await self.close(worker)
        await self.work.close()


@pytest.fixture
async def shop(house: House) -> AsyncIterator[Shop]:
    opened = Shop(house.store)
    yield opened
    await opened.end()


def answering(result: Result) -> Handler:
    async def handler(job: Job) -> Result:
        return result

    return handler


async def echo(job: Job) -> str:
    return job.body.upper()


@on_both_servers
@pytest.mark.row("K-39")
@pytest.mark.parametrize(
    ("result", "state"), [(None, "done"), (Done("x"), "done"), ("x", "done"), (Failed("x"), "failed")]
)
async def test_what_a_handler_answers_is_how_the_task_ends(shop: Shop, result: Result, state: str) -> None:
    await shop.work.tubes.create(Tube("t", keep=HOUR / 2))
    await shop.open(answering(result))
    end = await shop.work.wait(await shop.work.put("t", ""), SOON)
    assert (end.state, end.answer) == (TaskState(state), "" if result is None else "x")


@pytest.mark.row("K-39", "K-25")
async def test_what_a_handler_raises_is_tried_again_with_backoff_and_buried_in_the_end(
    house: House, shop: Shop
) -> None:
    await shop.work.tubes.create(Tube("t", attempts=3, backoff=QUICK))
    attempts: list[int] = []

    async def failing(job: Job) -> None:
        attempts.append(job.task.attempts)
        raise ValueError

    await shop.open(failing)
    task_id = await shop.work.put("t", "")
    await until(lambda: _is(house, task_id, "buried"))
    assert attempts == [1, 2, 3]


async def _is(house: House, task_id: str, state: str) -> bool:
    return await house.state(task_id) == state


@pytest.mark.row("K-39", "K-37")
async def test_a_retry_may_change_the_payload_and_say_when(shop: Shop) -> None:
    async def changing(job: Job) -> Result:
        return (
            Retry(timedelta(milliseconds=20), body="second") if job.body == "first" else f"{job.body} {job.checkpoint}"
        )

    await shop.open(changing)
    assert await shop.work.call("t", "first", SOON) == "second "


@pytest.mark.row("K-34", "K-39")
async def test_a_handler_may_bury(house: House, shop: Shop) -> None:
    await shop.open(answering(Bury()))
    task_id = await shop.work.put("t", "")
    await until(lambda: _is(house, task_id, "buried"))


@on_both_servers
@pytest.mark.row("K-20")
async def test_many_callers_get_their_own_answers(shop: Shop) -> None:
    await shop.open(echo)
    texts = [f"call {n}" for n in range(200)]
    assert await asyncio.gather(*(shop.work.call("t", text, SOON) for text in texts)) == [
        text.upper() for text in texts
    ]
    assert not shop.work.replies._heard


@pytest.mark.row("K-20")
async def test_a_call_that_did_not_work_says_so(shop: Shop) -> None:
    await shop.open(answering(Failed("no such thing")))
    with pytest.raises(Unanswered, match="failed: no such thing"):
        await shop.work.call("t", "", SOON)


@pytest.mark.row("K-20", "K-03")
async def test_a_call_that_nobody_takes_times_out_and_is_never_begun(house: House, shop: Shop) -> None:
    with pytest.raises(TimeoutError):
        await shop.work.call("t", "late", timedelta(milliseconds=50))
    house.passes(timedelta(seconds=1))
    assert await house.finish_all() == []


@pytest.mark.row("K-20")
async def test_an_answer_survives_a_restart_of_its_caller(house: House, shop: Shop) -> None:
    before = Work(house.store, "caller")
    early, late = [await before.ask("t", text) for text in ("early", "late")]
    await before.close()
    (task, _) = await house.take(limit=2, lease=HOUR)
    await house.queue.settle(task, answer="EARLY")
    after = Work(house.store, "caller")
    assert await after.answer(early, SOON) == "EARLY"
    house.passes(2 * HOUR)
    await shop.open(echo)
    assert await after.answer(late, SOON) == "LATE"
    assert await house.redis.xlen("reply:{0}:caller") == 0
    await after.close()


@pytest.mark.row("K-20", "K-31")
async def test_an_answer_survives_a_restart_of_the_server(own_server: Server) -> None:
    house = await House.open(own_server)
    shop = Shop(house.store)
    calling = asyncio.create_task(shop.work.call("t", "text", timedelta(seconds=20)))
    await until(lambda: _put(house))
    own_server.kill()
    own_server.start()
    await shop.open(echo)
    assert await calling == "TEXT"
    await shop.end()
    await house.close()


async def _put(house: House) -> bool:
    return bool((await house.queue.stats())["tubes"].get("t"))


@on_both_servers
@pytest.mark.row("K-36")
async def test_several_wait_for_the_end_of_a_task_that_others_put(house: House, shop: Shop) -> None:
    task_id = await house.queue.put("t", "", lane="lane")
    others = [Work(house.store) for _ in range(3)]
    waiting = [asyncio.create_task(work.wait(task_id, SOON)) for work in others]
    await until(lambda: _waits(house, task_id, 3))
    (task,) = await house.take()
    began = time.monotonic()
    await house.queue.settle(task, answer="x")
    assert {(await one).answer for one in waiting} == {"x"}
    assert time.monotonic() - began < 0.5
    for work in others:
        await work.close()


async def _waits(house: House, task_id: str, count: int) -> bool:
    told = await house.redis.hget(f"queue:{{0}}:task:{task_id.partition('.')[2]}", "reply")
    return len(str(told).split()) == count


@pytest.mark.row("K-36")
@pytest.mark.parametrize("end", ["cancelled", "expired"])
async def test_who_waits_hears_of_every_end(house: House, shop: Shop, end: str) -> None:
    task_id = await house.queue.put("t", "", expires=house.now() + timedelta(minutes=1))
    waiting = asyncio.create_task(shop.work.wait(task_id, SOON))
    await until(lambda: _waits(house, task_id, 1))
    if end == "cancelled":
        await house.queue.cancel(task_id)
    else:
        house.passes(HOUR)
        await house.tick()
    assert (await waiting).state == end


@pytest.mark.row("K-36")
async def test_waiting_for_what_is_over_ends_at_once(house: House, shop: Shop) -> None:
    await shop.work.tubes.create(Tube("kept", keep=HOUR / 2))
    kept, gone = await house.queue.put("kept", ""), await house.queue.put("t", "")
    await house.finish_all("kept")
    await house.finish_all("t")
    assert (await shop.work.wait(kept, SOON)).state is TaskState.DONE
    with pytest.raises(NotFound):
        await shop.work.wait(gone, SOON)
    with pytest.raises(TimeoutError):
        await shop.work.wait(await house.queue.put("t", ""), timedelta(milliseconds=30))


@pytest.mark.row("K-13", "K-12", "K-39")
async def test_hundreds_of_handlers_keep_the_lanes(shop: Shop) -> None:
    seen: dict[str, list[int]] = {}
    busy: set[str] = set()

    async def handler(job: Job) -> None:
        assert job.task.lane not in busy
        busy.add(job.task.lane)
        await asyncio.sleep(0)
        seen.setdefault(job.task.lane, []).append(int(job.body))
        busy.discard(job.task.lane)

    for _ in range(2):
        await shop.open(handler, concurrency=300)
    for n in range(600):
        await shop.work.put("t", str(n), lane=f"lane {n % 60}")
    await until(lambda: sum(map(len, seen.values())) == 600)
    assert all(bodies == sorted(bodies) for bodies in seen.values())


@pytest.mark.row("K-39")
async def test_nothing_is_taken_that_no_handler_is_free_for(house: House, shop: Shop) -> None:
    gate, running = asyncio.Event(), 0

    async def handler(job: Job) -> None:
        nonlocal running
        running += 1
        await gate.wait()

    await shop.open(handler, concurrency=3)
    for _ in range(10):
        await shop.work.put("t", "")
    await until(lambda: running == 3)
    assert (await house.queue.stats())["tubes"]["t"]["states"]["ready"] == 7
    gate.set()
    await until(lambda: running == 10)


@pytest.mark.row("K-39", "K-24")
async def test_a_worker_that_is_stopped_finishes_what_it_has_and_takes_nothing_more(house: House, shop: Shop) -> None:
    gate, began = asyncio.Event(), asyncio.Event()

    async def handler(job: Job) -> None:
        began.set()
        await gate.wait()

    worker = await shop.open(handler, concurrency=1)
    for body in ("in hand", "next"):
        await shop.work.put("t", body)
    await began.wait()
    worker.stop()
    gate.set()
    await shop.close(worker)
    assert await house.finish_all() == ["next"]


@pytest.mark.row("K-39", "K-30")
async def test_what_is_not_finished_within_the_grace_is_given_back_unattempted(house: House, shop: Shop) -> None:
    began = asyncio.Event()

    async def endless(job: Job) -> None:
        began.set()
        await asyncio.Event().wait()

    worker = await shop.open(endless)
    await shop.work.put("t", "endless")
    await began.wait()
    worker.stop(timedelta(milliseconds=20))
    await shop.close(worker)
    (task,) = await house.take()
    assert task.attempts == 1


@pytest.mark.row("K-39")
async def test_a_lease_outlives_a_busy_event_loop(own_server: Server) -> None:
    """The handler blocks the loop for three leases; another process asks for work meanwhile."""
    house = await House.open(own_server)
    shop, begun = Shop(house.store), 0

    async def blocking(job: Job) -> str:
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
    await house.close()


def _claiming(server: Server) -> list[str]:
    """A process that lets time go on ten times a second, as any worker of the house does."""
    code = (
        "import asyncio\nfrom datetime import timedelta as d\n"
        "from core.queue import Queue\nfrom core.store import Store\n"
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
async def test_a_handler_that_hangs_loses_its_task_to_another(house: House, shop: Shop) -> None:
    hanging, bodies = asyncio.Event(), []

    async def handler(job: Job) -> None:
        bodies.append(job.body)
        if job.task.attempts == 1:
            await hanging.wait()

    lease = timedelta(milliseconds=150)
    await shop.open(handler, lease=lease, longest=timedelta(milliseconds=200))
    await shop.work.put("t", "a")
    await until(lambda: bodies == ["a", "a"])
    hanging.set()


@pytest.mark.row("K-09", "K-39")
async def test_a_handler_hears_that_its_task_was_cancelled_and_is_stopped_when_it_was_lost(
    house: House, shop: Shop
) -> None:
    heard: list[str] = []

    async def handler(job: Job) -> None:
        try:
            await job.cancelled.wait()
            heard.append("cancelled")
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            heard.append("lost")
            raise

    await shop.open(handler, lease=timedelta(milliseconds=300))
    task_id = await shop.work.put("t", "")
    await until(lambda: _is(house, task_id, "taken"))
    await house.queue.cancel(task_id)
    await until(lambda: heard == ["cancelled"])
    house.passes(HOUR)
    await house.tick()
    await until(lambda: heard == ["cancelled", "lost"])


@pytest.mark.row("K-33", "K-39")
async def test_a_checkpoint_reaches_the_next_holder(shop: Shop) -> None:
    async def long(job: Job) -> Result:
        if not job.checkpoint:
            assert await job.save("half")
            return Retry(timedelta(0))
        return job.checkpoint

    await shop.open(long)
    assert await shop.work.call("t", "", SOON) == "half"


@pytest.mark.row("K-20")
@pytest.mark.parametrize("name", ["two words", "\n"])
async def test_a_client_is_one_word(house: House, name: str) -> None:
    with pytest.raises(Invalid):
        Work(house.store, name)
