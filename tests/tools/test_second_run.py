"""Failed tests run once more, alone: a real pytest on small suites."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from cli.commands.development.checks import MOST, MOST_UNSTABLE, run_twice

# Fails when it runs for the first time.
UNSTABLE = """
from pathlib import Path

def test_unstable():
    ran = Path(__file__).with_suffix(".ran")
    is_second = ran.exists()
    ran.touch()
    assert is_second
"""
WORKERS = ("-v",)
"""Takes the place of `-n 6`: these suites run without plugins, which take seconds to load."""
BROKEN = "def test_broken():\n    assert False\n"
GOOD = "def test_good():\n    pass\n"


ENVIRONMENT = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


class Suite:
    """`runs`: the arguments of each run of pytest."""

    def __init__(self, folder: Path, **files: str) -> None:
        self.folder = folder
        self.runs: list[Sequence[str]] = []
        for name, text in files.items():
            (folder / f"test_{name}.py").write_text(text)

    def run(self, words: Sequence[str]) -> bool:
        self.runs.append(words)
        command = [sys.executable, "-m", "pytest", "-q", "--rootdir", str(self.folder), *words]
        return (
            subprocess.run(command, cwd=self.folder, env=ENVIRONMENT, capture_output=True, check=False).returncode == 0
        )

    def run_twice(self) -> tuple[bool, list[str]]:
        return run_twice(self.run, WORKERS, ())


def test_a_suite_that_passes_runs_once(tmp_path: Path) -> None:
    suite = Suite(tmp_path, good=GOOD)
    assert suite.run_twice() == (True, [])
    assert len(suite.runs) == 1


def test_a_test_that_passes_alone_is_named_as_unstable(tmp_path: Path) -> None:
    suite = Suite(tmp_path, good=GOOD, unstable=UNSTABLE)
    assert suite.run_twice() == (True, ["test_unstable.py::test_unstable"])
    assert WORKERS[0] in suite.runs[0]
    assert WORKERS[0] not in suite.runs[1]


@pytest.mark.parametrize(("number", "passes"), [(MOST_UNSTABLE, True), (MOST_UNSTABLE + 1, False)])
def test_only_few_tests_may_be_unstable(tmp_path: Path, number: int, passes: bool) -> None:
    suite = Suite(tmp_path, **{f"unstable{n}": UNSTABLE for n in range(number)})
    assert suite.run_twice() == (passes, [f"test_unstable{n}.py::test_unstable" for n in range(number)])
    assert len(suite.runs) == 2


def test_a_broken_test_fails_the_suite(tmp_path: Path) -> None:
    suite = Suite(tmp_path, broken=BROKEN, unstable=UNSTABLE)
    assert suite.run_twice() == (False, [])
    assert len(suite.runs) == 2


def test_many_failures_are_not_repeated(tmp_path: Path) -> None:
    suite = Suite(tmp_path, **{f"unstable{n}": UNSTABLE for n in range(MOST + 1)})
    assert suite.run_twice() == (False, [])
    assert len(suite.runs) == 1


def test_a_suite_that_cannot_start_is_not_repeated(tmp_path: Path) -> None:
    suite = Suite(tmp_path)
    assert suite.run_twice() == (False, [])
    assert len(suite.runs) == 1
