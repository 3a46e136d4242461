"""What becomes of an iteration that has begun with other code (U-31)."""

import asyncio
import logging
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from core.jobs import Actor
from core.jobs.steps import point_of
from jobs import Job
from jobs.code_names import names_compensations, unknown_names
from jobs.recovery import report_changed_code
from jobs.registry import installed
from jobs.testing import JobTest
from tests.support.waiting import until

ORDER = """
from jobs import Iteration, Job, Schedule
from names import send

async def value(text):
    return text

class Order(Job):
    name = "order"
    schedule = Schedule()

    async def run(self, iteration: Iteration) -> str:
        await iteration.step("search", value, "x")
        await iteration.effect(f"ask {iteration.user}", value, "y")
        await iteration.wait("approved")
        return await send(iteration)
"""

NAMES = """
async def send(iteration):
    return await iteration.step("letter", iteration.now, returns=str) if False else "sent"
"""


def version(folder: Path, *changes: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> type[Job]:
    """Return the job with these changes of its source, from a file of its own."""
    source = ORDER
    for before, after in changes:
        assert before in source
        source = source.replace(before, after)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "names", raising=False)
    (folder / "names.py").write_text(NAMES)
    file = folder / f"order_{len(list(folder.iterdir()))}.py"
    file.write_text(source)
    return installed([str(file)]).kinds["order"]


def test_a_compensation_that_has_begun_is_known_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A crash between two of them leaves the job to itself, and not to other code."""
    line = 'await iteration.wait("approved")'
    change = (line, f'iteration.compensate("asking", value, "z")\n        {line}')
    order, without = (version(tmp_path, *changes, monkeypatch=monkeypatch) for changes in ([change], []))
    stored = ["effect:compensate asking", "effect:compensate other"]
    assert unknown_names(order, stored) == ["effect:compensate other"]
    assert (names_compensations(order), names_compensations(without)) == (True, False)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (('f"ask {iteration.user}"', 'f"request {iteration.user}"'), "'effect:ask 1'"),
        (('wait("approved")', 'wait("accepted")'), "'wait:approved'"),
        (('name = "order"', 'name = "order"\n    version = "2"'), "version ''"),
    ],
)
async def test_an_iteration_is_left_to_the_code_that_can_go_on_with_it(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    change: tuple[str, str],
    named: str,
) -> None:
    """It is reported at start, with the job and the name; the code of before goes on with it, side by side; what begins
    afterwards begins with the new code.
    """
    before = version(tmp_path, monkeypatch=monkeypatch)
    after = version(tmp_path, change, monkeypatch=monkeypatch)
    async with JobTest.open(before) as test:
        await test.start("order.1")
        test.deploy(after)
        with caplog.at_level(logging.WARNING):
            await report_changed_code(test.store, test.jobs, test.worker.registry.kinds)
        assert "job order.1: waits for a process" in caplog.text
        assert named in caplog.text
        await test.signal("order.1", "approved")
        await test.advance(timedelta(minutes=1))
        job = await test.job("order.1")
        assert job.state == "running"
        assert named in str(job.reason)
        await test.start("order.2")
        test.deploy(before)
        await test.advance(timedelta(minutes=1))
        job = await test.job("order.1")
        assert (job.state, job.result, job.reason) == ("finished", "sent", None)
        test.deploy(after)
        await test.signal("order.2", "accepted" if "accepted" in change[1] else "approved")
        assert (await test.job("order.2")).result == "sent"


async def test_a_job_that_is_stopped_and_started_begins_with_the_new_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = version(tmp_path, monkeypatch=monkeypatch)
    after = version(tmp_path, ("approved", "accepted"), monkeypatch=monkeypatch)
    async with JobTest.open(before) as test:
        await test.start("order.1")
        test.deploy(after)
        await test.jobs.stop(test.id_of("order.1"), Actor.ADMIN)
        await test.start("order.1")
        await test.signal("order.1", "accepted")
        assert (await test.job("order.1")).result == "sent"


async def test_a_reset_iteration_is_left_to_code_that_knows_its_effects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = version(tmp_path, monkeypatch=monkeypatch)
    after = version(tmp_path, ('f"ask {iteration.user}"', 'f"request {iteration.user}"'), monkeypatch=monkeypatch)
    async with JobTest.open(before) as test:
        await test.start("order.1")
        test.deploy(after)
        await test.jobs.reset(test.id_of("order.1"), point_of("search"), Actor.ADMIN)
        await test.advance(timedelta(minutes=1))
        assert "'effect:ask 1'" in str((await test.job("order.1")).reason), "it would take place under two names"
        test.deploy(before)
        await test.advance(timedelta(minutes=1))
        await test.signal("order.1", "approved")
        assert (await test.job("order.1")).result == "sent"


async def test_a_step_with_another_name_is_reported_and_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    before = version(tmp_path, monkeypatch=monkeypatch)
    after = version(tmp_path, ('"search"', '"found"'), monkeypatch=monkeypatch)
    async with JobTest.open(before) as test:
        await test.start("order.1")
        test.deploy(after)
        running = asyncio.create_task(test.worker.run())
        await until(lambda: "job order.1: the code has no step:search any more" in caplog.text)
        test.worker.stop(timedelta(seconds=5))
        await running
        test.deploy(after)
        await test.signal("order.1", "approved")
        assert (await test.job("order.1")).result == "sent"


async def test_names_are_read_beside_the_class_and_what_is_computed_stands_for_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = [
        "step:search",
        "step:letter",
        "step:other",
        "effect:ask 7",
        "wait approved\t\t1",
        "wait child a 1\t\t1",
        "sleep\t\t1",
    ]
    job = version(tmp_path, monkeypatch=monkeypatch)
    assert unknown_names(job, stored) == ["step:other"]
    monkeypatch.setattr(job, "checks_names", False)
    assert unknown_names(job, stored) == []
    computed = version(tmp_path, ('step("search"', 'step("search" + iteration.user'), monkeypatch=monkeypatch)
    assert unknown_names(computed, stored) == []
    handed_on = version(
        tmp_path, ("await iteration.step(", "await (lambda f, *a: f(*a))(iteration.step, "), monkeypatch=monkeypatch
    )
    assert unknown_names(handed_on, stored) == []
