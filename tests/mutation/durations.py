"""A pytest plugin that writes how long each test took: `-p tests.mutation.durations --durations-to FILE`."""

import json
from collections import defaultdict
from pathlib import Path

import pytest

_SECONDS: dict[str, float] = defaultdict(float)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--durations-to", help="file for the seconds of each test, as JSON")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _SECONDS[report.nodeid] += report.duration


def pytest_sessionfinish(session: pytest.Session) -> None:
    """With xdist only the controller writes: it receives every worker's reports."""
    path = session.config.getoption("--durations-to")
    if path and not hasattr(session.config, "workerinput"):
        Path(path).write_text(json.dumps(_SECONDS))
