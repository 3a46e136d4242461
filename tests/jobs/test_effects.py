"""Effects: when they may begin, how often they take place, and what their answer is at a repetition."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from core.jobs import Actor, JobState
from core.jobs.steps import UnitRecord
from jobs import Found, Iteration, NotDone
from jobs.external_services import Outside
from jobs.recording.guard import Guard
from jobs.signals import Interrupted, Lost
from tests.jobs.conftest import ANNA, Playground
from tests.support.waiting import until

MANY = 60
QUICK = timedelta(seconds=1)


class Letters:
    """An outside service. The first letter waits for `gate`."""

    def __init__(self) -> None:
        self.sent: list[int] = []
        self.began = asyncio.Event()
        self.gate = asyncio.Event()

    async def send(self, number: int) -> int:
        self.began.set()
        await self.gate.wait()
        self.sent.append(number)
        return number

    async def send_all(self, iteration: Iteration) -> None:
        for number in range(MANY):
            await iteration.effect(f"letter {number}", self.send, number)

    async def send_all_whatever_is_raised(self, iteration: Iteration) -> None:
        for number in range(MANY):
            try:
                await iteration.effect(f"letter {number}", self.send, number)
            except BaseException:  # noqa: BLE001 - as a careless author writes
                continue


async def pause(playground: Playground) -> None:
    await playground.jobs.pause(ANNA, Actor.USER)


async def stop(playground: Playground) -> None:
    await playground.jobs.stop(ANNA, Actor.USER)


async def shut_down(playground: Playground) -> None:
    for worker, _ in playground.workers:
        worker.stop(timedelta(seconds=20))


@pytest.mark.parametrize("order", [pause, stop, shut_down])
@pytest.mark.parametrize("is_careless", [False, True], ids=["", "everything is caught"])
async def test_of_sixty_effects_only_the_one_in_hand_is_finished_after_a_request_to_stop(
    playground: Playground, order: Callable[[Playground], Awaitable[None]], is_careless: bool
) -> None:
    letters = Letters()
    playground.run = letters.send_all_whatever_is_raised if is_careless else letters.send_all
    playground.start_worker()
    await playground.jobs.start(ANNA)
    await asyncio.wait_for(letters.began.wait(), 20)
    await order(playground)
    letters.gate.set()
    await playground.stop()
    assert letters.sent == [0]
    assert await statuses(playground, "letter 0", "letter 1") == ["done", None]
    if order is shut_down:
        playground.start_worker()
        await playground.iterations(1)
        assert letters.sent == list(range(MANY)), "the iteration had not ended"


async def test_no_effect_begins_after_an_operator_has_cancelled_the_task(playground: Playground) -> None:
    letters = Letters()

    async def send(number: int) -> None:
        if letters.sent:
            await asyncio.sleep(0.1)
        await letters.send(number)

    async def run(iteration: Iteration) -> None:
        for number in range(MANY):
            await iteration.effect(f"letter {number}", send, number)

    playground.run = run
    playground.start_worker(lease=QUICK)
    job = await playground.jobs.start(ANNA)
    await asyncio.wait_for(letters.began.wait(), 20)
    await playground.stack.queue.cancel(job.record.task)
    letters.gate.set()

    async def is_over() -> bool:
        found = await playground.jobs.storage.read(ANNA)
        return found is not None and not found.holder

    await until(is_over)
    assert 0 < len(letters.sent) < MANY


async def test_a_cancelled_iteration_that_goes_on_begins_no_effect(playground: Playground) -> None:
    letters = Letters()
    letters.gate.set()
    tried = asyncio.Event()

    async def run(iteration: Iteration) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            try:
                await letters.send_all(iteration)
            finally:
                tried.set()

    playground.run, playground.max_runtime, playground.most_failures = run, timedelta(seconds=0.2), 1
    playground.start_worker()
    await playground.jobs.start(ANNA)
    failed = await playground.in_state(JobState.FAILED)
    assert "took longer than" in failed.record.reason
    assert tried.is_set()
    assert letters.sent == []


async def guard_of(
    playground: Playground, *, is_stopping: Callable[[], bool], holds_lease: Callable[[], bool]
) -> Guard:
    job = await playground.jobs.start(ANNA)
    begun = await playground.jobs.storage.save(job, holder="1 attempt")
    assert begun is not None
    return Guard(playground.jobs.storage, begun, "1 attempt", is_stopping, holds_lease)


def iteration_of(playground: Playground, guard: Guard) -> Iteration:
    return Iteration(guard, {}, Outside(playground.stack.store), playground.jobs)


@pytest.mark.parametrize("reason", [Interrupted, Lost])
async def test_an_effect_that_may_not_begin_leaves_no_intent(
    playground: Playground, reason: type[BaseException]
) -> None:
    """The process is asked to stop, or loses its lease, while the intent is being stored."""
    answers = iter([False, True])

    def is_stopping() -> bool:
        return reason is Interrupted and next(answers)

    guard = await guard_of(playground, is_stopping=is_stopping, holds_lease=lambda: reason is not Lost)
    letters = Letters()
    with pytest.raises(reason):
        await iteration_of(playground, guard).effect("letter", letters.send, 1)
    assert await statuses(playground, "letter") == [None]
    assert not letters.began.is_set()


async def test_the_intent_is_not_even_stored_if_the_job_does_not_run(playground: Playground) -> None:
    """So a crash right after leaves nothing unclear."""
    guard = await guard_of(playground, is_stopping=lambda: False, holds_lease=lambda: True)
    await playground.jobs.pause(ANNA, Actor.USER)
    assert await guard.write_intent("effect:letter", '{"status":"begun"}') == "paused"
    await playground.jobs.stop(ANNA, Actor.USER)
    assert await guard.write_intent("effect:letter", '{"status":"begun"}') == "stopped"
    assert await statuses(playground, "letter") == [None]


async def test_a_call_that_certainly_did_nothing_is_made_again(playground: Playground) -> None:
    calls = 0

    async def send() -> str:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise NotDone("the service is closed")
        return "sent"

    results: list[Any] = []

    async def run(iteration: Iteration) -> None:
        results.append(await iteration.effect("letter", send))

    playground.run = run
    playground.start_worker()
    await playground.jobs.start(ANNA)
    await playground.iterations(1)
    assert (calls, results) == (2, ["sent"])


@pytest.mark.parametrize(("per_iteration", "times"), [(True, 3), (False, 1)])
async def test_an_effect_takes_place_once_in_each_iteration_or_once_for_ever(
    playground: Playground, per_iteration: bool, times: int
) -> None:
    sent: list[int] = []

    async def run(iteration: Iteration) -> None:
        async def digest() -> int:
            sent.append(iteration.number)
            return iteration.number

        assert await iteration.effect("digest", digest, per_iteration=per_iteration) == sent[-1]

    playground.run, playground.period = run, timedelta(seconds=1)
    playground.start_worker()
    await playground.jobs.start(ANNA)
    await playground.iterations(3)
    assert sent[:times] == list(range(times))
    assert len(sent) >= times if per_iteration else sent == [0]
    lines = [line.text for line in await playground.jobs.log.last(ANNA)]
    assert ("done for ever in an earlier iteration, so not now: digest" in lines) is not per_iteration


async def test_a_digest_of_this_iteration_is_not_sent_again_after_a_stop_and_a_start(playground: Playground) -> None:
    sent: list[int] = []
    begun = asyncio.Event()

    async def digest(number: int) -> None:
        sent.append(number)

    async def run(iteration: Iteration) -> None:
        await iteration.effect("digest", digest, iteration.number, per_iteration=True)
        if not begun.is_set():
            begun.set()
            await asyncio.Event().wait()

    playground.run = run
    playground.start_worker()
    await playground.jobs.start(ANNA)
    await asyncio.wait_for(begun.wait(), 20)
    await playground.jobs.stop(ANNA, Actor.USER)
    await playground.stop(grace=timedelta(0))
    await playground.jobs.start(ANNA)
    playground.start_worker()
    await playground.iterations(1)
    assert sent == [0]


class Payments:
    """A service that knows idempotency keys. Its first answer is lost."""

    def __init__(self) -> None:
        self.keys: list[str] = []

    async def pay(self, amount: int, *, idempotency_key: str) -> int:
        self.keys.append(idempotency_key)
        if len(self.keys) == 1:
            raise ConnectionError("no answer")
        return amount


async def pay_by_job(playground: Playground, remembers: timedelta, **more: Any) -> Payments:
    payments, results = Payments(), list[Any]()

    async def run(iteration: Iteration) -> None:
        results.append(await iteration.effect("rent", payments.pay, 100, idempotent_for=remembers, **more))

    playground.run, playground.most_failures = run, 2
    playground.start_worker()
    await playground.jobs.start(ANNA)
    return payments


async def test_a_call_whose_answer_was_lost_is_repeated_with_the_same_idempotency_key(playground: Playground) -> None:
    payments = await pay_by_job(playground, timedelta(hours=1))
    await playground.iterations(1)
    assert len(payments.keys) == 2
    assert len(set(payments.keys)) == 1
    (rent,) = (await playground.jobs.units.page(ANNA))[0]
    assert (rent.status, rent.result, rent.idempotency_key) == ("done", 100, payments.keys[0])


async def test_a_call_is_not_repeated_after_the_service_may_have_forgotten_its_key(playground: Playground) -> None:
    payments = await pay_by_job(playground, timedelta(milliseconds=1))
    failed = await playground.in_state(JobState.FAILED)
    assert len(payments.keys) == 1
    assert "whether 'rent' took place is not known" in failed.record.reason


async def test_after_the_key_is_forgotten_the_service_is_asked(playground: Playground) -> None:
    async def exists() -> Found:
        return Found(100)

    payments = await pay_by_job(playground, timedelta(milliseconds=1), exists=exists)
    await playground.iterations(1)
    assert len(payments.keys) == 1
    (rent,) = (await playground.jobs.units.page(ANNA))[0]
    assert (rent.status, rent.result) == ("done", 100)


async def test_a_refusal_of_the_repeated_call_does_not_forget_the_first_one(playground: Playground) -> None:
    keys: list[str] = []

    async def pay(*, idempotency_key: str) -> None:
        keys.append(idempotency_key)
        if len(keys) == 1:
            raise ConnectionError("no answer")
        if len(keys) == 2:
            raise NotDone("too many requests")

    async def run(iteration: Iteration) -> None:
        await iteration.effect("rent", pay, idempotent_for=timedelta(hours=1))

    playground.run = run
    playground.start_worker()
    await playground.jobs.start(ANNA)
    await playground.iterations(1)
    assert len(keys) == 3
    assert len(set(keys)) == 1


async def test_an_effect_whose_result_cannot_be_stored_is_refused_and_not_repeated(playground: Playground) -> None:
    calls: list[int] = []

    async def send() -> object:
        calls.append(1)
        return object()

    async def run(iteration: Iteration) -> None:
        await iteration.effect("letter", send)

    playground.run, playground.most_failures = run, 2
    playground.start_worker()
    await playground.jobs.start(ANNA)
    failed = await playground.in_state(JobState.FAILED)
    assert calls == [1]
    assert failed.record.reason.startswith("'letter' took place. The result of letter cannot be stored")


async def statuses(playground: Playground, *effects: str) -> list[str | None]:
    stored = await playground.jobs.storage.units(ANNA, [f"effect:{name}" for name in effects])
    return [msgspec.json.decode(record, type=UnitRecord).status if record else None for record in stored]
