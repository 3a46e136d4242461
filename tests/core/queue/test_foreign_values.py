"""Any value of any type in any position of a batch, and anything that a handler raises, harms its own task alone."""

import asyncio
import itertools
from collections.abc import Callable
from dataclasses import fields, replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from core.errors import Invalid
from core.queue import Attempt, Backoff, Bury, Done, Failed, Handler, NewTask, Result, Retry, Suspend, Tube
from core.queue.checks import LARGEST
from tests.support.hypothesis_settings import SETTINGS
from tests.support.servers import on_both_servers
from tests.support.stack import HOUR, Stack
from tests.support.waiting import until
from tests.support.workshop import Workshop

EXAMPLES = settings(SETTINGS, max_examples=150)
FAR = Backoff(HOUR, HOUR)
NAMES = [field.name for field in fields(NewTask)]
WORST = "half of an emoji: \ud83d"
count = itertools.count()


class Unreadable(Exception):
    """Its text cannot be read."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


texts = st.text(st.characters(exclude_categories=()), max_size=9) | st.sampled_from([WORST, "", "a\nb", "\0"])
plain = st.one_of(
    *(texts, st.binary(max_size=5), st.integers(), st.floats(), st.booleans(), st.none(), st.complex_numbers()),
    *(
        st.datetimes(),
        st.timedeltas(),
        st.sampled_from([10**400, object(), str, Unreadable(), timedelta.max]),
    ),
)
anything = st.recursive(plain, lambda some: st.lists(some, max_size=3) | st.dictionaries(texts, some, max_size=2))


@given(places=st.lists(st.booleans(), min_size=2, max_size=6), name=st.sampled_from(NAMES), value=anything)
@example(places=[False, True], name="tenant", value="")
@example(places=[False, True], name="lane", value="")
@EXAMPLES
async def test_a_value_that_cannot_be_put_is_refused_to_its_own_caller(
    stack: Stack, places: list[bool], name: str, value: Any
) -> None:
    tube = f"put {next(count)}"
    foreign = replace(NewTask("foreign"), **{name: value})
    puts = [
        stack.queue.put(tube, foreign if is_foreign else NewTask(f"own {n}")) for n, is_foreign in enumerate(places)
    ]
    ends = await asyncio.gather(*puts, return_exceptions=True)
    for is_foreign, end in zip(places, ends, strict=True):
        assert isinstance(end, (str, TypeError, Invalid) if is_foreign else str), end
    done = await stack.finish_all(tube)
    own = [f"own {n}" for n, is_foreign in enumerate(places) if not is_foreign]
    assert sorted(body for body in done if body.startswith("own")) == sorted(own)


RAISED = (
    *(asyncio.CancelledError("by itself"), GeneratorExit(), BaseException(), SystemExit(3), KeyboardInterrupt()),
    *(StopIteration(), StopAsyncIteration(), TimeoutError(), Unreadable(), ValueError(WORST)),
    BaseExceptionGroup(WORST, [KeyboardInterrupt()]),
)
RESULTS: tuple[Callable[[Any], Result], ...] = (
    *(Done, Failed, Bury, Retry, Suspend, lambda value: value),
    lambda value: Retry(HOUR, body=value),
    lambda value: Retry(HOUR, checkpoint=value),
    lambda value: Retry(HOUR, error=value),
    lambda value: Suspend(HOUR, checkpoint=value),
)


async def cancel_itself(attempt: Attempt) -> None:
    running = asyncio.current_task()
    assert running
    running.cancel()
    await asyncio.sleep(0)


async def cancel_itself_and_return(attempt: Attempt) -> str:
    running = asyncio.current_task()
    assert running
    running.cancel()
    return "fine"


def raising(fault: BaseException) -> Handler:
    async def handle(attempt: Attempt) -> None:
        raise fault

    return handle


def returning(make: Callable[[Any], Result], value: Any) -> Handler:
    async def handle(attempt: Attempt) -> Result:
        return make(value)

    return handle


def saving(value: Any) -> Handler:
    async def handle(attempt: Attempt) -> None:
        await attempt.save(value)

    return handle


of_results = anything.filter(lambda value: not isinstance(value, timedelta) or value >= HOUR)
"""Values for results: none retries at once, because such a task is begun again and again."""

foreign = st.one_of(
    st.builds(returning, st.sampled_from(RESULTS), of_results),
    st.builds(saving, anything),
    st.builds(raising, st.sampled_from(RAISED)),
    st.sampled_from([cancel_itself, cancel_itself_and_return]),
)


@given(handlers=st.lists(st.none() | foreign, min_size=2, max_size=6))
@EXAMPLES
async def test_whatever_a_handler_returns_or_raises_its_neighbours_are_done_at_once(
    stack: Stack, workshop: Workshop, handlers: list[Handler | None]
) -> None:
    """No task is left to its lease: one that is not done is retried later, buried or suspended."""
    tube, together = f"handled {next(count)}", asyncio.Event()
    await workshop.client.tubes.create(Tube(tube, backoff=FAR, keep=HOUR))
    begun: list[str] = []

    async def handle(attempt: Attempt) -> Result:
        begun.append(attempt.body)
        if len(begun) == len(handlers):
            together.set()
        await together.wait()
        handler = handlers[int(attempt.body)]
        return await handler(attempt) if handler else "fine"

    worker = await workshop.start_worker(handle, tube)
    ids = await workshop.client.put_many(tube, [NewTask(str(n)) for n in range(len(handlers))])

    async def none_is_taken() -> bool:
        return not {*await asyncio.gather(*map(stack.state, ids))} & {"taken", "ready"}

    await until(none_is_taken)
    for handler, task_id in zip(handlers, ids, strict=True):
        task = await stack.queue.inspector.peek(task_id)
        assert handler or (task.state, task.answer) == ("done", "fine"), task
    assert sorted(begun) == [str(n) for n in range(len(handlers))]
    await workshop.stop_worker(worker)


WRONG_RESULT = "A handler returns None, a text, Done, Failed, Retry, Bury, Suspend or AlreadySettled, and not dict."

FAULTS = {
    "ValueError: half of an emoji: \\ud83d": raising(ValueError(WORST)),
    "Unreadable": raising(Unreadable()),
    "CancelledError: by itself": raising(asyncio.CancelledError("by itself")),
    "SystemExit: 3": raising(SystemExit(3)),
    f"TypeError: {WRONG_RESULT}": returning(lambda value: value, {"a": 1}),
    "TypeError: The answer of a handler's result must be a text (str), and not dict.": returning(Done, {"a": 1}),
    "Invalid: The answer of a handler's result has half of a surrogate pair, which is no character.": returning(
        lambda value: value, WORST
    ),
    "TypeError: The body of a handler's result must be a text (str), and not int.": returning(
        lambda value: Retry(body=value), 5
    ),
    "TypeError: The checkpoint of a task must be a text (str), and not int.": saving(5),
}


@pytest.mark.parametrize("error", FAULTS)
async def test_an_operator_reads_why_an_attempt_failed(
    stack: Stack, workshop: Workshop, error: str, caplog: pytest.LogCaptureFixture
) -> None:
    await workshop.client.tubes.create(Tube("t", backoff=FAR))
    await workshop.start_worker(FAULTS[error])
    task_id = await workshop.client.put("t", "")

    async def is_waiting() -> bool:
        return await stack.state(task_id) == "waiting"

    await until(is_waiting)
    assert (await stack.queue.inspector.peek(task_id)).error == error
    assert f"t: task {task_id} failed and is retried" in caplog.text


@pytest.mark.parametrize("name", ["body", "lane", "user"])
async def test_a_text_beyond_what_the_server_takes_is_refused(stack: Stack, name: str) -> None:
    """The server closes the connection of all callers when a command is too large."""
    options: dict[str, Any] = {name: "x" * (LARGEST + 1)}
    with pytest.raises(Invalid, match="4194304 at most"):
        await stack.queue.put("t", replace(NewTask(""), **options))


@on_both_servers
async def test_a_task_of_another_program_with_bytes_that_are_no_text_disturbs_no_caller(stack: Stack) -> None:
    """Regression: the reply to a claim could not be decoded, and broke the connection of all callers for ever."""
    await stack.queue.put("t", NewTask("before"))
    name = stack.store.library.functions["put"].registered
    keys, *words = stack.store.fixed_words(0)
    row: list[str | int | bytes] = ["id", "tenant", "", 5, "", "", "", "", "", "", "", b"caf\xe9"]
    await stack.store.command("FCALL", name, keys, *words, "other", 1, 1, "t", *row)
    bodies = [task.body for task in (await stack.claim(limit=10)).tasks]
    assert bodies == ["before", "caf\\xe9"]
