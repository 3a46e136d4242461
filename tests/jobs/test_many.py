"""Many jobs are counted, and as many are stopped, resumed, reset or resolved (U-29)."""

import asyncio
from argparse import ArgumentParser
from datetime import timedelta

import pytest

from cli.command import CommandFailed, add_json_option
from cli.commands.installation.jobs import declare
from cli.commands.installation.jobs_mending import many
from core.admission.actions import ActionLog
from core.errors import Invalid
from core.jobs import Actor, JobId, JobState
from core.jobs.bulk import BulkJobs, JobChanges
from core.jobs.steps import UnitOutcome, UnitStatus, point_of
from core.jobs.views import Wanted
from tests.jobs.conftest import Playground
from tests.support.paths import ROOT
from tests.system.guides.blocks import commands_run_by

TENANT = "university"
FAILED = Wanted(JobState.FAILED, "hunt", reason="no paper")


def named(user: int) -> JobId:
    return JobId(TENANT, "hunt", str(user))


async def started(playground: Playground, count: int) -> None:
    await playground.jobs.kinds.publish(playground.registry.schedules)
    await asyncio.gather(*(playground.jobs.start(named(user), {"number": user}) for user in range(count)))


async def failed(playground: Playground, count: int, reason: str = "no paper") -> None:
    """Make jobs that have failed after a step, with an effect that is unknown."""
    await started(playground, count)
    for user in range(count):
        job, storage = named(user), playground.jobs.storage
        await storage.save(await playground.jobs.find(job), holder="1 attempt")
        await storage.write_step(job, "1 attempt", "step:search", "[7]")
        await storage.write_intent(job, "1 attempt", JobState.RUNNING, f"effect:apply {user}", '{"status":"unknown"}')
        await playground.jobs.fail(job, reason)


async def states(playground: Playground) -> list[JobState]:
    return [job.record.state for job in (await playground.jobs.list(TENANT, limit=1000))[0]]


async def test_as_many_jobs_as_were_counted_are_stopped_and_none_that_has_changed_since(playground: Playground) -> None:
    await started(playground, 5)
    jobs, selected = playground.jobs, BulkJobs(playground.jobs, TENANT, Wanted(kind="hunt"))
    found = await selected.count()
    assert (found.count, found.has_more) == (5, False)
    playground.stack.advance_clock(timedelta(seconds=1))
    await jobs.pause(named(2), Actor.USER)
    await jobs.start(JobId(TENANT, "hunt", "late"))
    changes = await selected.change(lambda job: jobs.stop(job, Actor.ADMIN, "enough"), found.now, 3)
    assert (changes.changed, changes.refused, changes.next) == (3, {}, None)
    playground.stack.advance_clock(timedelta(seconds=1))
    changes = await selected.change(lambda job: jobs.stop(job, Actor.ADMIN, "enough"), found.now, 5)
    assert (changes.changed, changes.unchanged, changes.refused) == (1, 5, {}), "a repetition changes none again"
    assert (await jobs.find(named(2))).record.state is JobState.PAUSED
    assert (await jobs.find(JobId(TENANT, "hunt", "late"))).record.state is JobState.RUNNING
    assert (await states(playground)).count(JobState.STOPPED) == 4


async def test_a_job_that_refuses_stops_no_other_and_is_counted_by_its_code(playground: Playground) -> None:
    await failed(playground, 3)
    await playground.jobs.start(named(1))
    selected = BulkJobs(playground.jobs, TENANT, Wanted(kind="hunt"))
    before, jobs = (await selected.count()).now, playground.jobs
    changes = await selected.change(lambda job: jobs.reset(job, point_of("search"), Actor.ADMIN), before, 3)
    assert changes == JobChanges(2, 0, {"STEP_NOT_FOUND": 1}, None), "the start has dropped the steps"
    changes = await selected.change(lambda job: jobs.resume(job, Actor.ADMIN), before + 60_000, 3)
    assert changes == JobChanges(0, 0, {"JOB_IN_OTHER_STATE": 3}, None)


async def test_what_is_unknown_in_all_jobs_that_failed_for_one_reason_is_resolved(playground: Playground) -> None:
    await failed(playground, 3)
    await playground.jobs.start(JobId(TENANT, "hunt", "other"))
    await playground.jobs.fail(JobId(TENANT, "hunt", "other"), "no ink")
    selected, units = BulkJobs(playground.jobs, TENANT, FAILED), playground.jobs.units
    found = await selected.count()
    assert found.count == 3
    changes = await selected.change(lambda job: _resolved(playground, job, "effect:app"), found.now, 3)
    assert changes == JobChanges(3, 0, {}, None)
    for user in range(3):
        done = {unit.id: unit.result for unit in (await units.page(named(user), UnitStatus.DONE))[0]}
        assert done == {f"effect:apply {user}": 5, "step:search": [7]}
    changes = await selected.change(lambda job: _resolved(playground, job, "effect:app"), found.now, 3)
    assert changes == JobChanges(0, 3, {}, None), "nothing is unknown any more"


async def _resolved(playground: Playground, job: JobId, prefix: str) -> bool:
    return await playground.jobs.units.resolve_all(job, prefix, UnitOutcome.DONE, 5) > 0


async def test_a_call_changes_a_bounded_number_and_the_next_goes_on_there_also_after_a_break(
    playground: Playground,
) -> None:
    await started(playground, 720)
    jobs, selected = playground.jobs, BulkJobs(playground.jobs, TENANT, Wanted(JobState.RUNNING))
    found = await selected.count()
    assert found.count == 720
    first = await selected.change(lambda job: jobs.stop(job, Actor.ADMIN), found.now, 720)
    assert 500 <= first.changed < 720, "those of the same millisecond are changed together"
    assert first.refused == {}
    assert first.next is not None
    left = await selected.count()
    assert left.count == 720 - first.changed
    rest = await selected.change(lambda job: jobs.stop(job, Actor.ADMIN), found.now, left.count, first.next)
    assert (rest.changed, rest.next) == (left.count, None)


async def test_a_filter_that_selects_everything_is_refused(playground: Playground) -> None:
    with pytest.raises(Invalid, match="Choose jobs by state"):
        BulkJobs(playground.jobs, TENANT, Wanted())


async def test_the_commands_of_the_guide_count_and_change_many(
    playground: Playground, capsys: pytest.CaptureFixture[str]
) -> None:
    parser = ArgumentParser()
    add_json_option(parser)
    declare(parser)
    await failed(playground, 3, "ConnectionError in hunting.py")
    answers = []
    for guided in commands_run_by("tests/jobs/test_many.py", ROOT / "docs" / "jobs.md"):
        arguments = parser.parse_args([*guided[2:], "--tenant", TENANT])
        assert await many(playground.jobs, ActionLog(playground.stack.store), arguments) == 0
        answers.append(capsys.readouterr().out)
    assert answers[0].startswith("3 jobs; to reset them, add: --expected 3 --before 1")
    assert answers[1:] == ["3 jobs changed\n"] * 3


async def test_another_number_than_was_counted_changes_nothing(playground: Playground) -> None:
    parser = ArgumentParser()
    add_json_option(parser)
    declare(parser)
    await started(playground, 2)
    arguments = parser.parse_args(["many", "stop", "--kind", "hunt", "--expected", "3", "--tenant", TENANT])
    with pytest.raises(CommandFailed, match="2 jobs and not 3: nothing was changed"):
        await many(playground.jobs, ActionLog(playground.stack.store), arguments)
    assert await states(playground) == [JobState.RUNNING] * 2
