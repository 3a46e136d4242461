"""Pauses of users, of limits and of expired sign-ins: when they begin, how long they last, who ends them."""

from datetime import timedelta

import pytest

from core.errors import Forbidden
from core.jobs import Actor, JobState
from core.model.clock import to_ms
from jobs import Iteration, Pause
from jobs.external_services import Outside
from providers.sign_in import Tokens, Vault
from providers.sign_in.stored import new_key
from tests.jobs.conftest import ANNA, HOUR, Playground
from tests.jobs.fake_service import FakeService
from tests.support.waiting import stays, until


async def test_a_pause_is_seen_after_the_unit_in_hand_and_stays_after_a_restart(playground: Playground) -> None:
    service = await playground.begin_hunt()
    await playground.jobs.pause(ANNA, Actor.USER, "holiday")
    service.gate.set()
    await until(lambda: service.applied == [1])
    await playground.stop()
    playground.start_worker()
    playground.stack.advance_clock(2 * HOUR)
    await stays(lambda: service.applied == [1], during=0.5)
    assert (await playground.jobs.find(ANNA)).record.paused_by is Actor.USER
    await playground.jobs.resume(ANNA, Actor.USER)
    await playground.iterations(1)
    assert service.applied == [1, 2, 3]
    assert service.searches == 1


async def test_a_job_that_is_paused_and_resumed_in_one_unit_does_nothing_twice(playground: Playground) -> None:
    playground.start_worker()
    service = await playground.begin_hunt()
    for _ in range(3):
        await playground.jobs.pause(ANNA, Actor.USER)
        await playground.jobs.resume(ANNA, Actor.USER)
    await stays(lambda: service.waiting == 1)
    service.gate.set()
    await playground.iterations(1)
    assert service.applied == [1, 2, 3]


async def test_a_pause_and_a_resume_do_not_begin_the_next_iteration_early(playground: Playground) -> None:
    service = FakeService()
    playground.run = service.hunt
    playground.start_worker()
    await playground.jobs.start(ANNA)
    await playground.iterations(1)
    ended = await playground.jobs.find(ANNA)
    await playground.jobs.pause(ANNA, Actor.USER)
    resumed = await playground.jobs.resume(ANNA, Actor.USER)
    assert resumed.record.due == ended.record.due > to_ms(playground.jobs.now())
    await playground.jobs.pause(ANNA, Actor.USER)
    playground.stack.advance_clock(2 * HOUR)
    overdue = await playground.jobs.resume(ANNA, Actor.USER)
    assert ended.record.due < overdue.record.due <= to_ms(playground.jobs.now())
    await playground.iterations(2)


async def test_the_unit_in_hand_is_recorded_after_a_stop_a_start_and_a_stop_at_once(playground: Playground) -> None:
    service = await playground.begin_hunt()
    await playground.jobs.stop(ANNA, Actor.USER)
    await playground.jobs.start(ANNA)
    await playground.jobs.stop(ANNA, Actor.USER)
    service.gate.set()
    await playground.stop()
    assert service.applied == [1]
    playground.start_worker()
    await playground.jobs.start(ANNA)
    await playground.iterations(1)
    assert service.applied == [1, 2, 3]


async def test_a_limit_pauses_the_job_and_it_resumes_by_itself(playground: Playground) -> None:
    calls: list[int] = []

    async def run(iteration: Iteration) -> None:
        calls.append(iteration.number)
        if len(calls) == 1:
            until_tomorrow = playground.jobs.now() + timedelta(hours=12)
            raise Pause(Actor.LIMIT, "200 applications a day", until_tomorrow)

    playground.run = run
    playground.start_worker()
    await playground.jobs.start(ANNA)
    paused = await playground.in_state(JobState.PAUSED)
    assert paused.record.reason == "200 applications a day"
    playground.stack.advance_clock(timedelta(hours=12, seconds=1))
    await playground.iterations(1)
    assert calls == [0, 0]


async def is_paused(playground: Playground) -> bool:
    return (await playground.jobs.find(ANNA)).record.state is JobState.PAUSED


async def test_a_pause_of_the_user_outlasts_the_end_of_a_limit(playground: Playground) -> None:
    playground.run = FakeService().hunt
    await playground.jobs.start(ANNA)
    await playground.jobs.pause(ANNA, Actor.LIMIT, "limit", playground.jobs.now() + timedelta(minutes=1))
    await playground.jobs.pause(ANNA, Actor.USER)
    playground.start_worker()
    playground.stack.advance_clock(HOUR)
    await stays(lambda: is_paused(playground), during=0.5)
    with pytest.raises(Forbidden):
        await playground.jobs.resume(ANNA, Actor.LIMIT)


async def test_without_a_sign_in_the_job_is_paused_and_says_so(playground: Playground) -> None:
    async def run(iteration: Iteration) -> None:
        await iteration.access_token("vacancies")

    playground.run = run
    store = playground.stack.store
    playground.outside = Outside(store, Tokens(store, Vault([new_key()]), {}))
    playground.start_worker()
    await playground.jobs.start(ANNA)
    paused = await playground.in_state(JobState.PAUSED)
    assert (paused.record.paused_by, paused.record.reason) == (Actor.SIGN_IN, "sign in to vacancies again")
