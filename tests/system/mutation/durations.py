"""A pytest plugin: `-p tests.system.mutation.durations --durations-to FILE` writes which tests passed, and the seconds
that each test took.
"""

import json
from collections import defaultdict
from pathlib import Path

import pytest

_SECONDS: dict[str, float] = defaultdict(float)
_NOT_PASSED: set[str] = set()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--durations-to", help="file for the seconds of each test, as JSON")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _SECONDS[report.nodeid] += report.duration
    if not report.passed:
        _NOT_PASSED.add(report.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    path = session.config.getoption("--durations-to")
    if path and not hasattr(session.config, "workerinput"):  # the controller of xdist gets the reports of all workers
        passed = [test for test in _SECONDS if test not in _NOT_PASSED]
        Path(path).write_text(json.dumps({"seconds": _SECONDS, "passed": passed}))
