"""A pytest plugin that records which calls of the functions each test reaches, and how long the test takes.

    pytest -p tests.system.model_checking.recorder --notes-to FILE

Instrumented functions write a line to the server's log before each call that a mutant leaves out. The new lines of the
log after a test belong to that test. Tests that fail with instrumented functions (they check the line of an error) are
left out of the notes.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from core.redis import library
from tests.system.model_checking.mutants import CALL

_MARK = "reached "
_LOG_CALL = f"redis.log(redis.LOG_WARNING, '{_MARK}' .. place)"
_PRELUDE = f"local function logged(place, call) {_LOG_CALL} return call end"


def instrumented(plain: library.Library) -> library.Library:
    """The same library under another name, with a log line before each call."""
    name = f"{plain.name}_recorded"
    pairs = zip(plain.text.split("\n"), plain.origin, strict=True)
    first, *lines = [_with_log(line, place) for line, place in pairs]
    return replace(
        plain,
        name=name,
        text="\n".join([first, _PRELUDE, *lines]).replace(plain.name, name),
        origin=(plain.origin[0], "recorder", *plain.origin[1:]),
        functions={
            function.name: replace(function, registered=f"{name}_{function.name}")
            for function in plain.functions.values()
        },
    )


def _with_log(line: str, place: str) -> str:
    if not place.startswith("lua/"):
        return line
    return CALL.sub(lambda found: f"logged('{place}', {found[0].removesuffix('(')})(", line)


class Recorder:
    """The notes of one session."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._read: dict[Path, int] = defaultdict(int)
        self._places: dict[str, set[str]] = defaultdict(set)
        self._seconds: dict[str, float] = defaultdict(float)
        self._failed: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid] += report.duration
        if report.failed:
            self._failed.add(report.nodeid)
        if report.when == "teardown":
            for log in self._logs():
                self._places[report.nodeid] |= set(self._new_places(log))

    def _logs(self) -> Iterable[Path]:
        base: Path = self._config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
        return [*base.glob("*/server.log"), *base.glob("*/*/server.log")]

    def _new_places(self, log: Path) -> list[str]:
        with log.open("rb") as text:
            text.seek(self._read[log])
            new = text.read()
        self._read[log] += len(new)
        return [found.decode() for found in re.findall(_MARK.encode() + rb"(lua/\S+)", new)]

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        notes = {
            test: {"places": sorted(places), "seconds": round(self._seconds[test], 3)}
            for test, places in self._places.items()
            if test not in self._failed
        }
        Path(session.config.getoption("--notes-to")).write_text(json.dumps(notes))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--notes-to", type=Path, required=True)


def pytest_configure(config: pytest.Config) -> None:
    plain = library.current
    library.current = cache(lambda: instrumented(plain()))
    config.pluginmanager.register(Recorder(config), "function-recorder")
