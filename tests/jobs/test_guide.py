"""The job of docs/jobs.md works as it is written there."""

import sys
from datetime import timedelta
from importlib import import_module
from pathlib import Path

import pytest

from core.jobs import JobId
from core.queue import QueueClient
from jobs import JobWorker
from jobs.registry import installed
from jobs.testing import JobTest
from tests.jobs.conftest import ANNA, Playground
from tests.support.paths import ROOT
from tests.system.guides.blocks import blocks_of

GUIDE = ROOT / "docs" / "jobs.md"


async def test_the_first_job_of_the_guide_sends_three_letters(playground: Playground, tmp_path: Path) -> None:
    (tmp_path / "hunting.py").write_text(GUIDE.read_text().split("```python\n")[1].split("```")[0])
    registry = installed([str(tmp_path / "hunting.py")])
    assert registry.schedules["hunt"].period == timedelta(minutes=1)
    store = playground.stack.store
    playground.run_worker(JobWorker(store, QueueClient(store), registry))
    user = JobId(ANNA.tenant, "hunt", "42")
    await playground.jobs.start(user, {"query": "teacher"})
    await playground.iterations(1, user)
    assert (tmp_path / "sent.txt").read_text().splitlines() == [
        f"I would like to be your teacher {number}." for number in (1, 2, 3)
    ]
    lines = [line.text for line in await playground.jobs.log.last(user)]
    assert lines == ["started by user", "applied: teacher 1", "applied: teacher 2", "applied: teacher 3"]


async def test_the_first_job_of_the_guide_outlives_a_night_without_its_service(tmp_path: Path) -> None:
    (tmp_path / "hunting.py").write_text(GUIDE.read_text().split("```python\n")[1].split("```")[0])
    (kind,) = installed([str(tmp_path / "hunting.py")]).kinds.values()
    module = sys.modules[kind.__module__]
    async with JobTest.open(kind) as test:
        calls: list[str] = []

        def is_down(query: str) -> ConnectionError:
            calls.append(query)
            return ConnectionError("down")

        search = test.double(module, "search", is_down)
        await test.start("hunt.42", {"query": "teacher"})
        await test.advance(timedelta(hours=10))
        assert len(calls) <= 10 * 60 + 10, "an outage costs the service no more calls than usual"
        search.answer = [{"id": 1, "title": "teacher 1"}]
        await test.advance(timedelta(minutes=2))
        assert (await test.job("hunt.42")).state == "running"
    assert (tmp_path / "sent.txt").read_text() == "I would like to be your teacher 1.\n"


async def test_the_test_of_the_guide_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = {block.about: block.text for block in blocks_of(GUIDE) if block.mark == "file"}
    for name in ("expenses", "test_expenses"):
        (tmp_path / f"{name}.py").write_text(blocks[f"{name}.py"])
    monkeypatch.syspath_prepend(tmp_path)
    await import_module("test_expenses").test_an_expense_is_paid_once_whatever_crashes()
