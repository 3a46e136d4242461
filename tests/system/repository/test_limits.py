"""No test hangs: each has a limit, and the failure of a test that awaits for too long shows where it awaits."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.support.paths import ROOT, TESTS

CONFTEST = """
from tests.conftest import pytest_addoption, pytest_collection_modifyitems
from tests.support import limits

limits.SHARE = 1 / 60
"""
SETTINGS = "[pytest]\nasyncio_mode = auto\ntimeout = 120\n"  # far above the 2 s in which the test has to end
HANGING = """
import asyncio

async def work(event):
    await event.wait()

async def test_hangs():
    helper = asyncio.create_task(asyncio.Event().wait(), name="helper")
    await work(asyncio.Event())

async def test_raises_a_timeout_of_its_own():
    async with asyncio.timeout(0.01):
        await asyncio.Event().wait()

async def test_passes():
    await asyncio.sleep(0)
"""


def test_a_test_that_awaits_for_ever_fails_and_shows_where(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "pytest.ini").write_text(SETTINGS)
    (tmp_path / "test_hanging.py").write_text(HANGING)
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:schemathesis"]
    done = subprocess.run(
        words, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=150
    )
    assert "2 failed, 1 passed" in done.stdout
    assert "AssertionError: not over within 2 s" in done.stdout
    assert "test_hanging.py:5: in work\n" in done.stdout
    assert "helper at Event.wait" in done.stdout
    assert re.search(r"test_raises_a_timeout_of_its_own - (builtins\.)?TimeoutError", done.stdout)


def test_no_test_has_a_limit_below_that_of_all() -> None:
    """A machine under load is many times slower. 0 would be no limit at all."""
    marks = [
        (file.name, float(limit))
        for file in TESTS.rglob("*.py")
        for limit in re.findall(r"mark\.timeout\(([\d.]+)\)", file.read_text())
    ]
    assert marks
    assert [mark for mark in marks if mark[1] <= 300] == []
