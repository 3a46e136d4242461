"""Parameters that are changed while a job exists: by its user in every state, and by the job itself."""

import pytest

from core.errors import Invalid
from core.jobs import Actor, JobState
from jobs import Iteration, UnitFailed
from tests.jobs.conftest import ANNA, HOUR, Playground
from tests.support.waiting import until


@pytest.mark.parametrize("end", ["running", "paused", "stopped", "failed"])
async def test_parameters_are_changed_in_every_state_and_the_state_stays(playground: Playground, end: str) -> None:
    jobs = playground.jobs
    await jobs.start(ANNA, {"query": "teacher", "pages": 3})
    if end == "paused":
        await jobs.pause(ANNA, Actor.ADMIN, "complaints")
    if end == "stopped":
        await jobs.stop(ANNA, Actor.USER)
    if end == "failed":
        await jobs.fail(ANNA, "broken")
    before = (await jobs.find(ANNA)).record
    after = (await jobs.change(ANNA, {"query": "cook", "pages": None}, Actor.USER)).record
    assert after.parameters == {"query": "cook"}
    assert (after.state, after.paused_by, after.reason, after.due) == (
        before.state,
        before.paused_by,
        before.reason,
        before.due,
    )
    assert [line.text for line in await jobs.log.last(ANNA)][-1] == "pages, query: changed by user"


async def test_an_iteration_that_has_begun_ends_and_the_next_one_has_the_new_parameters(playground: Playground) -> None:
    seen: list[tuple[int, str]] = []

    async def run(iteration: Iteration) -> None:
        seen.append((iteration.number, iteration.parameters["query"]))
        if len(seen) == 1:
            await playground.jobs.change(ANNA, {"query": "cook"}, Actor.USER)

    playground.run = run
    playground.start_worker()
    await playground.jobs.start(ANNA, {"query": "teacher"})
    await playground.iterations(1)
    playground.stack.advance_clock(HOUR)
    await playground.iterations(2)
    assert (seen[0], seen[-1]) == ((0, "teacher"), (1, "cook"))


async def test_what_a_job_chooses_itself_is_stored_and_used_by_later_iterations(playground: Playground) -> None:
    chosen: list[object] = []

    async def run(iteration: Iteration) -> None:
        if "query" not in iteration.parameters:
            await iteration.change_parameters(query="teacher", draft=None)
        chosen.append(dict(iteration.parameters))

    playground.run = run
    playground.start_worker()
    await playground.jobs.start(ANNA, {"draft": True, "pages": 3})
    await playground.iterations(1)
    assert (await playground.jobs.find(ANNA)).record.parameters == {"query": "teacher", "pages": 3}
    await playground.stop()
    playground.start_worker()
    playground.stack.advance_clock(HOUR)
    await playground.iterations(2)
    assert chosen == [{"query": "teacher", "pages": 3}] * 2


async def test_what_a_job_has_chosen_stays_if_the_iteration_then_fails(playground: Playground) -> None:
    async def run(iteration: Iteration) -> None:
        await iteration.change_parameters(query="teacher")
        raise UnitFailed("the service is closed")

    playground.run, playground.most_failures = run, 1
    playground.start_worker()
    await playground.jobs.start(ANNA)
    failed = await playground.in_state(JobState.FAILED)
    assert failed.record.parameters == {"query": "teacher"}


async def test_what_the_user_has_changed_at_the_same_moment_wins(playground: Playground) -> None:
    """The iteration is repeated with it; nothing that the job has stored before is lost."""
    attempts: list[str] = []
    stored: list[int] = []

    async def count() -> int:
        stored.append(1)
        return len(stored)

    async def run(iteration: Iteration) -> None:
        await iteration.step("count", count)
        attempts.append(iteration.parameters.get("query", ""))
        if not attempts[-1]:
            await playground.jobs.change(ANNA, {"query": "cook"}, Actor.USER)
            await iteration.change_parameters(query="teacher")

    playground.run = run
    playground.start_worker()
    await playground.jobs.start(ANNA)
    await playground.iterations(1)
    assert attempts == ["", "cook"]
    assert (await playground.jobs.find(ANNA)).record.parameters == {"query": "cook"}
    assert stored == [1]


async def test_parameters_that_are_too_large_or_no_json_are_refused(playground: Playground) -> None:
    refused: list[str] = []

    async def run(iteration: Iteration) -> None:
        for value in ("x" * 100_000, object()):
            try:
                await iteration.change_parameters(query=value)
            except Invalid as refusal:
                refused.append(refusal.code)

    playground.run = run
    playground.start_worker()
    await playground.jobs.start(ANNA, {"query": "teacher"})
    await until(lambda: len(refused) == 2)
    await playground.iterations(1)
    assert refused == ["PARAMETERS_TOO_LARGE", "PARAMETERS_MALFORMED"]
    found = (await playground.jobs.find(ANNA)).record
    assert (found.parameters, found.state) == ({"query": "teacher"}, JobState.RUNNING)
