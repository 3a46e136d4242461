"""Effects of one attempt, without a worker: what a second attempt, a refusal and a lost job leave behind."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from core.jobs import Actor, JobId, JobState, StoredJob
from core.queue import QueueClient
from core.redis.store import Argument, Store
from jobs import Iteration, JobWorker, NotDone, Unclear
from jobs.attempts import run_job
from jobs.recording.guard import Guard
from jobs.recovery import Standing, count_interrupted
from jobs.signals import Interrupted, Lost
from tests.jobs.conftest import ANNA, HOUR, Playground
from tests.jobs.test_effects import guard_of, iteration_of, statuses

Call = Callable[..., Awaitable[Any]]


async def sent(**_: str) -> str:
    return "sent"


async def attempt_of(playground: Playground, is_stopping: Callable[[], bool] = lambda: False) -> Guard:
    return await guard_of(playground, is_stopping=is_stopping, holds_lease=lambda: True)


def later_iteration(playground: Playground, guard: Guard) -> Iteration:
    record = replace(guard.job.record, iteration=guard.job.record.iteration + 1)
    job = StoredJob(ANNA, record, guard.job.version)
    storage = playground.jobs.storage
    return iteration_of(playground, Guard(storage, job, "1 attempt", lambda: False, lambda: True))


def that_loses_the_job(playground: Playground, guard: Guard, fault: Exception | None = None) -> Call:
    """A call during which another attempt begins."""

    async def call() -> str:
        assert await playground.jobs.storage.save(guard.job, holder="another attempt")
        if fault:
            raise fault
        return "sent"

    return call


async def test_an_effect_for_ever_is_skipped_only_if_an_earlier_iteration_has_done_it(playground: Playground) -> None:
    guard = await attempt_of(playground)
    for _ in range(2):
        iteration = iteration_of(playground, guard)
        assert await iteration.effect("digest", sent) == "sent"
        assert iteration.skipped_effects == []
    later = later_iteration(playground, guard)
    assert await later.effect("digest", sent) == "sent"
    assert later.skipped_effects == ["digest"]


async def test_an_effect_of_an_item_is_not_named_among_the_skipped_ones(playground: Playground) -> None:
    guard = await attempt_of(playground)
    await iteration_of(playground, guard).effect("letter", sent)
    later = later_iteration(playground, guard)

    async def handle(item: int) -> None:
        await later.effect("letter", sent)

    await later.each([1], handle, key=str)
    assert later.skipped_effects == []


@pytest.mark.parametrize("fault", [None, NotDone("closed")])
async def test_an_attempt_that_has_lost_its_job_during_a_call_ends(
    playground: Playground, fault: Exception | None
) -> None:
    guard = await attempt_of(playground)
    call = that_loses_the_job(playground, guard, fault)
    with pytest.raises(Lost):
        await iteration_of(playground, guard).effect("letter", call)
    assert await statuses(playground, "letter") == ["begun"], "only the other attempt may write"


async def test_a_repetition_that_may_not_begin_leaves_the_key_of_the_first_call(playground: Playground) -> None:
    async def no_answer(**_: str) -> None:
        raise ConnectionError

    guard = await attempt_of(playground)
    with pytest.raises(ConnectionError):
        await iteration_of(playground, guard).effect("rent", no_answer, idempotent_for=HOUR)
    requests = iter([False, True])
    stopping = Guard(playground.jobs.storage, guard.job, "1 attempt", lambda: next(requests), lambda: True)
    with pytest.raises(Interrupted):
        await iteration_of(playground, stopping).effect("rent", sent, idempotent_for=HOUR)
    assert await statuses(playground, "rent") == ["begun"]


@pytest.mark.parametrize(("remembered", "is_repeated"), [(timedelta(hours=1), True), (None, False)])
async def test_an_effect_that_was_begun_is_repeated_only_with_a_key(
    playground: Playground, remembered: timedelta | None, is_repeated: bool
) -> None:
    async def no_answer(**_: str) -> None:
        raise ConnectionError

    guard = await attempt_of(playground)
    with pytest.raises(ConnectionError):
        await iteration_of(playground, guard).effect("rent", no_answer, idempotent_for=remembered)
    again = iteration_of(playground, guard)
    if is_repeated:
        assert await again.effect("rent", sent, idempotent_for=remembered) == "sent"
    else:
        with pytest.raises(Unclear, match="whether 'rent' took place is not known"):
            await again.effect("rent", sent, idempotent_for=remembered)


async def test_an_effect_of_each_iteration_takes_place_again_in_the_next_one(playground: Playground) -> None:
    numbers: list[int] = []

    async def count() -> int:
        numbers.append(len(numbers))
        return len(numbers)

    guard = await attempt_of(playground)
    for iteration in (iteration_of(playground, guard), later_iteration(playground, guard)):
        await iteration.effect("digest", count, per_iteration=True)
    assert numbers == [0, 1]


async def test_an_effect_may_return_nothing(playground: Playground) -> None:
    async def nothing() -> None:
        """An effect without a result."""

    guard = await attempt_of(playground)
    for _ in range(2):
        assert await iteration_of(playground, guard).effect("letter", nothing, returns=str) is None


async def test_a_step_is_stored_and_a_name_is_free_again_after_a_failure(playground: Playground) -> None:
    async def refused() -> None:
        raise ConnectionError

    iteration = iteration_of(playground, await attempt_of(playground))
    with pytest.raises(ConnectionError):
        await iteration.step("search", refused)
    assert await iteration.step("search", sent) == "sent"
    assert await playground.jobs.storage.steps(ANNA) == {"step:search": '"sent"'}


@pytest.mark.parametrize("name", ["", "hunt"])
async def test_items_are_handled_once_and_counted(playground: Playground, name: str) -> None:
    handled: list[int] = []

    async def handle(item: int) -> None:
        handled.append(item)

    guard = await attempt_of(playground)
    assert await iteration_of(playground, guard).each([1, 2, 2], handle, key=str, name=name) == 2
    assert await iteration_of(playground, guard).each([1, 2, 3], handle, key=str, name=name) == 3, "of this iteration"
    assert handled == [1, 2, 3]
    unit = f"unit {name}:3" if name else "unit:3"
    assert (await playground.jobs.storage.units(ANNA, [unit]))[0]


async def test_after_a_pause_no_item_is_handled_and_no_step_is_computed(playground: Playground) -> None:
    calls: list[int] = []

    async def call(item: int) -> None:
        calls.append(item)

    guard = await attempt_of(playground)
    await playground.jobs.pause(ANNA, Actor.USER)
    with pytest.raises(Interrupted):
        await iteration_of(playground, guard).each([1], call, key=str)
    with pytest.raises(Interrupted):
        await iteration_of(playground, guard).step("search", call, 2)
    assert calls == []


async def test_the_code_of_a_job_ends_with_its_attempt(playground: Playground) -> None:
    begun, ended = asyncio.Event(), list[str]()

    async def run(iteration: Iteration) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(iteration.user)

    playground.run = run
    guard = await attempt_of(playground)
    kind = playground.registry.kinds["hunt"]
    attempt = asyncio.create_task(run_job(kind, iteration_of(playground, guard), guard))
    await asyncio.wait_for(begun.wait(), 20)
    attempt.cancel()
    with pytest.raises(asyncio.CancelledError):
        await attempt
    assert ended == ["1"]
    with pytest.raises(Interrupted):
        guard.check()


class ChangedBetween(Store):
    """Another changes a job between the moment when a worker reads it and that when its attempt begins, once."""

    change: Callable[[], Awaitable[object]] | None = None

    async def run(self, name: str, shard: int, *arguments: Argument) -> Any:
        if name == "begin_iteration" and self.change:
            change, self.change = self.change, None
            await change()
        return await super().run(name, shard, *arguments)


async def test_a_job_that_is_changed_when_its_attempt_begins_is_read_again(playground: Playground) -> None:
    texts: list[object] = []

    async def run(iteration: Iteration) -> None:
        texts.append(iteration.parameters)

    playground.run = run
    job = await playground.jobs.start(ANNA)
    changed = StoredJob(ANNA, replace(job.record, parameters={"query": "teacher"}), job.version)
    store = await ChangedBetween.open(playground.stack.server.url)
    store.change = lambda: playground.jobs.storage.save(changed, puts_task=False)
    playground.run_worker(JobWorker(store, QueueClient(store), playground.registry))
    await playground.iterations(1)
    await playground.stop()
    assert texts == [{"query": "teacher"}]
    await store.close()


async def test_jobs_that_should_run_now_are_counted_by_what_they_wait_for(playground: Playground) -> None:
    begun, due, taken, paused = (JobId("university", "hunt", str(user)) for user in range(4))
    for job_id in (begun, due, taken, paused):
        await playground.jobs.start(job_id)
    (task,) = await playground.stack.take("jobs.hunt")
    first = await playground.jobs.find(begun)
    assert first.record.task.endswith(task.id.rpartition(".")[2])
    await playground.jobs.pause(paused, Actor.LIMIT, "busy", playground.jobs.now() + timedelta(seconds=1))
    playground.stack.advance_clock(timedelta(seconds=2))
    found = await playground.jobs.find(taken)
    assert await playground.jobs.storage.save(
        StoredJob(taken, replace(found.record, begun=True), found.version), holder="1 attempt"
    )
    counts = await count_interrupted(playground.stack.store, playground.jobs, ["hunt"])
    assert counts == {Standing.TAKEN: 1, Standing.DUE: 1, Standing.INTERRUPTED: 1}
    assert await count_interrupted(playground.stack.store, playground.jobs, ["digest"]) == {}


async def test_the_repetition_of_a_begin_whose_answer_was_lost_gets_the_same(playground: Playground) -> None:
    job, storage = await playground.jobs.start(ANNA), playground.jobs.storage
    first = await storage.begin_iteration(job, "1 worker task", "begins")
    assert first is not None
    assert await storage.begin_iteration(job, "1 worker task", "begins") == first
    assert await storage.begin_iteration(job, "2 worker task") is None
    assert [line.text for line in await playground.jobs.log.last(ANNA)] == ["started by user", "begins"]


async def test_the_repetition_of_a_take_whose_answer_was_lost_gets_the_same(playground: Playground) -> None:
    guard, storage = await attempt_of(playground), playground.jobs.storage
    await playground.jobs.signal(ANNA, "letter")
    (entry,) = await storage.signals(ANNA)
    taken = [await storage.take_signal(ANNA, guard.holder, entry, name, "{}") for name in ("wait", "wait", "branch")]
    assert taken == ["running", "running", "taken"]


async def test_a_job_that_resumes_by_itself_is_due_again_as_its_iteration_is(playground: Playground) -> None:
    await playground.jobs.start(ANNA)
    paused = await playground.jobs.pause(ANNA, Actor.LIMIT, "busy", playground.jobs.now() + HOUR)
    running = StoredJob(ANNA, replace(paused.record, state=JobState.RUNNING, resume_at=0), paused.version)
    assert await playground.jobs.storage.begin_iteration(running, "1 worker task")
    assert await playground.jobs.storage.overdue(0, paused.record.due, 0, 1) == [ANNA]


async def test_the_record_of_an_item_ends_the_count_of_losses(playground: Playground) -> None:
    guard = await attempt_of(playground)
    await playground.jobs.storage.count_loss(await playground.jobs.find(ANNA), "lost")
    assert await playground.jobs.storage.save(guard.job, holder="1 attempt", puts_task=False)
    await guard.write_unit("unit:7", '{"status":"done"}')
    assert (await playground.jobs.find(ANNA)).losses == 0
