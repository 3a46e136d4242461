"""Which tests run on the same pytest worker, which begin first, and on how many workers."""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from xdist.scheduler import LoadFileScheduling

TOGETHER = ("tests/delivery/console/test_[a-k]*", "tests/delivery/console/test_[l-z]*", "tests/cli/up/*")
"""The tests of each of these share an installation that is up. Its start takes as long as hundreds of tests. Those of
the console would take longer on one worker than all others on seven.
"""

ONE_BY_ONE = ("tests/system/guides/test_guides.py::*",)
"""A file whose tests take minutes together and share nothing but a sandbox, which starts quickly."""

FIRST = (*TOGETHER, *ONE_BY_ONE, "tests/cli/*", "tests/system/*", "tests/scenarios/teacher/*")
"""The longest: at the end all workers have short tests left, so that none runs alone."""

MOST_WORKERS = 8
"""Four for each core of a small machine: a worker that tests needs a fifth of a core, and waits for the rest of the
time. Collecting all tests takes each worker as much processor time as hundreds of them.
"""


class ByFile(LoadFileScheduling):  # type: ignore[misc]  # xdist has no types
    """Gives a free worker the next file, all tests of the next entry of `TOGETHER`, or one of `ONE_BY_ONE`."""

    def _split_scope(self, nodeid: str) -> str:  # xdist's own schedulers differ in this method alone
        return unit_of(nodeid) or super()._split_scope(nodeid)


def unit_of(nodeid: str) -> str | None:
    """Return the name of the unit that is not a file; None if the test belongs to its file."""
    return nodeid if pattern_of(nodeid, ONE_BY_ONE) else pattern_of(nodeid, TOGETHER)


def pattern_of(nodeid: str, patterns: Iterable[str]) -> str | None:
    return next((pattern for pattern in patterns if fnmatchcase(nodeid, pattern)), None)


def longest_first(items: list[pytest.Item]) -> None:
    """Sorts tests in place; those of one entry of `FIRST` keep their order."""
    order = {pattern: place for place, pattern in enumerate(FIRST)}
    items.sort(key=lambda item: order.get(pattern_of(item.nodeid, FIRST) or "", len(FIRST)))


def number_of_workers(chosen: Iterable[str]) -> int:
    """Return as many workers as there are files with tests, up to `MOST_WORKERS`: a worker collects all the chosen
    tests. `chosen`: files, folders and ids of tests.
    """
    paths = [Path(one.partition("::")[0]) for one in chosen]
    files = {file for path in paths for file in ([path] if path.is_file() else path.rglob("test_*.py"))}
    return max(1, min(len(files), MOST_WORKERS))
