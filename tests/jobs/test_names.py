"""Names in an iteration stand for one result each, and a result is the same at the first run and at a repetition."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from core.jobs import JobState
from jobs import Iteration
from tests.jobs.conftest import ANNA, Playground


async def value(of: Any) -> Any:
    return of


async def other_value(of: Any) -> Any:
    return of


async def one_step_twice(iteration: Iteration) -> None:
    for item in (1, 2):
        await iteration.step("letter", value, item)


async def one_effect_twice(iteration: Iteration) -> None:
    for item in (1, 2):
        await iteration.effect("apply", value, item)


async def two_each_over_the_same_items(iteration: Iteration) -> None:
    await iteration.each([1, 2], value, key=str)
    await iteration.each([1, 2], other_value, key=str)


async def a_number_as_a_name(iteration: Iteration) -> None:
    await iteration.step(1, value, 2)  # type: ignore[arg-type]


async def an_empty_name(iteration: Iteration) -> None:
    await iteration.effect("", value, 2)


async def a_name_of_each_with_a_colon(iteration: Iteration) -> None:
    await iteration.each([1], value, key=str, name="a:b")


async def a_name_that_is_too_long(iteration: Iteration) -> None:
    await iteration.step("x" * 501, value, 2)


@pytest.mark.parametrize(
    ("run", "reason"),
    [
        (one_step_twice, "The step 'letter' stands twice in one iteration: put what differs into the name"),
        (one_effect_twice, "The effect 'apply' stands twice in one iteration: put what differs into the name"),
        (two_each_over_the_same_items, "Two `each` with different handlers would share their items: give them names"),
        (a_number_as_a_name, "The name of a step is a text of at most 500 characters; this one is 1."),
        (an_empty_name, "The name of a effect is a text of at most 500 characters; this one is ''."),
        (a_name_that_is_too_long, "The name of a step is a text of at most 500 characters; this one is 'xxx"),
        (a_name_of_each_with_a_colon, "The name of an each has no colon; this one is 'a:b'."),
    ],
)
async def test_a_name_that_stands_for_two_things_is_refused_at_the_first_run(
    playground: Playground, run: Any, reason: str
) -> None:
    playground.run, playground.most_failures = run, 1
    playground.start_worker()
    await playground.jobs.start(ANNA)
    failed = await playground.in_state(JobState.FAILED)
    assert failed.record.reason.startswith(reason)


async def test_two_each_with_names_handle_the_same_items_both(playground: Playground) -> None:
    seen: list[str] = []

    async def read(item: int) -> None:
        seen.append(f"read {item}")

    async def apply(item: int) -> None:
        seen.append(f"apply {item}")

    async def run(iteration: Iteration) -> None:
        await iteration.each([1, 2], read, key=str, name="read")
        for page in ([1, 2], [2, 3]):
            await iteration.each(page, apply, key=str)

    playground.run = run
    playground.start_worker()
    await playground.jobs.start(ANNA)
    await playground.iterations(1)
    assert seen == ["read 1", "read 2", "apply 1", "apply 2", "apply 3"]


async def test_a_step_that_failed_may_be_tried_again_in_the_same_iteration(playground: Playground) -> None:
    calls: list[int] = []
    results: list[Any] = []

    async def search() -> str:
        calls.append(1)
        if len(calls) == 1:
            raise ConnectionError("no answer")
        return "found"

    async def run(iteration: Iteration) -> None:
        try:
            results.append(await iteration.step("search", search))
        except ConnectionError:
            results.append(await iteration.step("search", search))

    playground.run, playground.most_failures = run, 1
    playground.start_worker()
    await playground.jobs.start(ANNA)
    await playground.iterations(1)
    assert results == ["found"]


@dataclass
class Vacancy:
    title: str
    until: datetime


MAY = datetime(2027, 5, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("given", "returns", "expected"),
    [
        ((1, (2, 3)), Any, [1, [2, 3]]),
        ({1: "one"}, Any, {"1": "one"}),
        (MAY, Any, "2027-05-01T12:00:00Z"),
        (Vacancy("cook", MAY), Any, {"title": "cook", "until": "2027-05-01T12:00:00Z"}),
        (b"abc", Any, "YWJj"),
        ([Vacancy("cook", MAY)], list[Vacancy], [Vacancy("cook", MAY)]),
        (MAY, datetime, MAY),
        ((1, 2), tuple[int, int], (1, 2)),
        ("ключ", Any, "ключ"),
    ],
)
async def test_a_result_is_the_same_at_the_first_run_and_at_a_repetition(
    playground: Playground, given: Any, returns: Any, expected: Any
) -> None:
    steps: list[Any] = []
    effects: list[Any] = []

    async def run(iteration: Iteration) -> None:
        steps.append(await iteration.step("search", value, given, returns=returns))
        effects.append(await iteration.effect("apply", value, given, returns=returns))
        if len(steps) == 1:
            raise ConnectionError("no answer")

    playground.run = run
    playground.start_worker()
    await playground.jobs.start(ANNA)
    await playground.iterations(1)
    assert steps == effects == [expected, expected]
    assert [type(found) for found in (*steps, *effects)] == [type(expected)] * 4


async def test_a_result_that_is_not_of_its_declared_type_is_refused_at_the_first_run(playground: Playground) -> None:
    async def run(iteration: Iteration) -> None:
        await iteration.step("search", value, "many", returns=int)

    playground.run, playground.most_failures = run, 1
    playground.start_worker()
    await playground.jobs.start(ANNA)
    failed = await playground.in_state(JobState.FAILED)
    assert failed.record.reason == "The result of search is not what `returns` says: Expected `int`, got `str`."
