"""Who may end whose pause: users, administrators, limits and sign-ins, and when a job then goes on."""

import asyncio
from datetime import datetime, time, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from core.errors import Forbidden
from core.jobs import Actor, DailyWindow, JobId, JobState, StoredJob
from core.model.clock import from_ms
from tests.jobs.conftest import ANNA, HOUR, Playground
from tests.jobs.fake_service import FakeService
from tests.support.waiting import until

MOSCOW = "Europe/Moscow"
DAYTIME = DailyWindow(time(9), time(20))


async def test_a_user_does_not_escape_the_pause_of_an_administrator_by_stop_and_start(playground: Playground) -> None:
    jobs = playground.jobs
    await jobs.start(ANNA)
    await jobs.pause(ANNA, Actor.ADMIN, "complaints")
    stopped = await jobs.stop(ANNA, Actor.USER)
    assert (stopped.record.state, stopped.record.reason) == (JobState.STOPPED, "complaints")
    for _ in range(2):
        with pytest.raises(Forbidden) as refusal:
            await jobs.start(ANNA)
        assert refusal.value.code == "JOB_PAUSED_BY_OTHER"
    started = await jobs.start(ANNA, by=Actor.ADMIN)
    assert (started.record.state, started.record.paused_by, started.record.reason) == (JobState.RUNNING, None, "")


async def test_a_user_starts_a_job_again_that_an_administrator_has_stopped(playground: Playground) -> None:
    jobs = playground.jobs
    await jobs.start(ANNA)
    await jobs.stop(ANNA, Actor.ADMIN)
    assert (await jobs.start(ANNA)).record.state is JobState.RUNNING
    await jobs.pause(ANNA, Actor.ADMIN)
    await jobs.stop(ANNA, Actor.ADMIN)
    assert (await jobs.start(ANNA)).record.state is JobState.RUNNING, "the stop has ended the pause, too"


@pytest.mark.parametrize("by", [Actor.LIMIT, Actor.SIGN_IN, Actor.USER])
async def test_a_user_stops_and_starts_a_job_that_no_administrator_has_paused(
    playground: Playground, by: Actor
) -> None:
    await playground.jobs.start(ANNA)
    await playground.jobs.pause(ANNA, by)
    assert (await playground.jobs.stop(ANNA, Actor.USER)).record.paused_by is None
    assert (await playground.jobs.start(ANNA)).record.state is JobState.RUNNING


@pytest.mark.parametrize("by", [Actor.LIMIT, Actor.USER, Actor.ADMIN])
async def test_signing_in_resumes_only_a_job_that_waits_for_it(playground: Playground, by: Actor) -> None:
    jobs = playground.jobs
    await jobs.start(ANNA)
    await jobs.pause(ANNA, by, "for today", jobs.now() + HOUR)
    assert not await jobs.waits_for_sign_in(ANNA.tenant, ANNA.user, "vacancies")
    await jobs.resume_after_sign_in(ANNA.tenant, ANNA.user, "vacancies")
    assert (await jobs.find(ANNA)).record.paused_by is by


async def test_signing_in_starts_no_job_that_has_ended(playground: Playground) -> None:
    jobs = playground.jobs
    for end in (jobs.stop(ANNA, Actor.USER), jobs.fail(ANNA, "broken")):
        await jobs.start(ANNA)
        ended = await end
        await jobs.resume_after_sign_in(ANNA.tenant, ANNA.user, "vacancies")
        assert (await jobs.find(ANNA)).record.state is ended.record.state


async def test_signing_in_resumes_the_jobs_of_this_user_and_tenant_only(playground: Playground) -> None:
    jobs, others = playground.jobs, [JobId("university", "hunt", "2"), JobId("school", "hunt", "1")]
    for job_id in (ANNA, *others):
        await jobs.start(job_id)
        await jobs.pause(job_id, Actor.SIGN_IN, "sign in again")
    await jobs.resume_after_sign_in(ANNA.tenant, ANNA.user, "vacancies")
    found = [(await jobs.find(job_id)).record.state for job_id in (ANNA, *others)]
    assert found == [JobState.RUNNING, JobState.PAUSED, JobState.PAUSED]
    await jobs.stop(others[1], Actor.ADMIN)


async def test_several_sign_ins_that_end_at_the_same_moment_resume_a_job_once(playground: Playground) -> None:
    jobs = playground.jobs
    await jobs.start(ANNA)
    await jobs.pause(ANNA, Actor.SIGN_IN, "sign in again")
    await asyncio.gather(*(jobs.resume_after_sign_in(ANNA.tenant, ANNA.user, "vacancies") for _ in range(10)))
    assert (await jobs.find(ANNA)).record.state is JobState.RUNNING
    assert [line.text for line in await jobs.log.last(ANNA)].count("resumed by sign_in") == 1


@pytest.mark.parametrize(("lower", "higher"), list(pairwise(Actor)))
async def test_a_lower_actor_neither_ends_nor_replaces_a_pause_and_a_higher_one_does(
    playground: Playground, lower: Actor, higher: Actor
) -> None:
    jobs = playground.jobs
    await jobs.start(ANNA)
    await jobs.pause(ANNA, higher, "first")
    for attempt in (jobs.resume(ANNA, lower), jobs.pause(ANNA, lower, "second")):
        with pytest.raises(Forbidden):
            await attempt
    assert (await jobs.find(ANNA)).record.reason == "first"
    await jobs.resume(ANNA, higher)
    await jobs.pause(ANNA, lower, "second", jobs.now() + HOUR)
    replaced = await jobs.pause(ANNA, higher, "third")
    assert (replaced.record.paused_by, replaced.record.resume_at) == (higher, 0), "and with it its end"


async def test_a_job_that_was_paused_between_two_iterations_is_resumed_when_the_next_is_due(
    playground: Playground,
) -> None:
    playground.run = FakeService().hunt
    playground.start_worker()
    await playground.jobs.start(ANNA)
    await playground.iterations(1)
    due = (await playground.jobs.find(ANNA)).record.due
    await playground.jobs.pause(ANNA, Actor.USER)
    resumed = await playground.jobs.resume(ANNA, Actor.USER)
    assert (resumed.record.due, resumed.record.iteration) == (due, 1)


async def started_at(playground: Playground, hour: int) -> StoredJob:
    """A job with a window from 9 to 20 o'clock in Moscow, started there at this hour of the next day."""
    playground.window = DAYTIME
    await playground.jobs.kinds.publish(playground.registry.schedules)
    now = playground.jobs.now().astimezone(ZoneInfo(MOSCOW))
    wanted = now.replace(hour=hour, minute=1, second=0, microsecond=0) + timedelta(days=1)
    playground.stack.advance_clock(wanted - now)
    return await playground.jobs.start(ANNA, timezone=MOSCOW)


def wall(ms: int) -> tuple[int, int]:
    """Hour and minute in Moscow."""
    at: datetime = from_ms(ms).astimezone(ZoneInfo(MOSCOW))
    return at.hour, at.minute


async def test_a_job_that_is_resumed_outside_its_window_waits_for_it(playground: Playground) -> None:
    job = await started_at(playground, 12)
    assert wall(job.record.due)[0] == 12
    await playground.jobs.pause(ANNA, Actor.USER)
    playground.stack.advance_clock(11 * HOUR)
    assert wall((await playground.jobs.resume(ANNA, Actor.USER)).record.due) == (9, 0)


async def test_an_iteration_that_was_paused_in_its_middle_goes_on_in_the_window_only(playground: Playground) -> None:
    await started_at(playground, 12)
    service = FakeService()
    service.gate.clear()
    playground.run = service.hunt
    playground.start_worker()
    await until(lambda: service.waiting == 1)
    await playground.jobs.pause(ANNA, Actor.USER)
    service.gate.set()
    await until(lambda: service.applied == [1])
    playground.stack.advance_clock(11 * HOUR)
    resumed = await playground.jobs.resume(ANNA, Actor.USER)
    assert resumed.record.begun
    assert wall(resumed.record.due) == (9, 0)


async def test_a_limit_that_ends_outside_the_window_lasts_until_it_opens(playground: Playground) -> None:
    await started_at(playground, 12)
    midnight = playground.jobs.now() + 12 * HOUR
    paused = await playground.jobs.pause(ANNA, Actor.LIMIT, "200 a day", midnight)
    assert wall(paused.record.resume_at) == (9, 0)
