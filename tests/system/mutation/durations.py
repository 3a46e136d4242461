"""A pytest plugin: `-p tests.system.mutation.durations --durations-to FILE` writes how long each passed test took."""

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
    """With xdist only the controller writes: it receives every worker's reports."""
    path = session.config.getoption("--durations-to")
    if path and not hasattr(session.config, "workerinput"):
        Path(path).write_text(json.dumps({test: taken for test, taken in _SECONDS.items() if test not in _NOT_PASSED}))
