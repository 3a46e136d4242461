"""Runs tests, and once more those that failed, one after the other on the then quiet machine.

The tests use real servers, processes and clocks, eight at a time on two cores. A test that fails only then is
*unstable*: it is named, and it does not fail the check, because its failure shows nothing about the change that is
checked (docs/decisions/0060). More than `MOST_UNSTABLE` such tests fail the check: the suite as a whole is no longer
trusted then. More than `MOST` failures are never only the machine: then there is no second run.
"""

import json
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

MOST = 5
"""Tests that are run once more."""

MOST_UNSTABLE = 2
"""Tests that may pass only at the second run."""

RunPytest = Callable[[Sequence[str]], bool]
"""Runs pytest with these arguments; returns whether it succeeded."""


def run_twice(run: RunPytest, workers: Sequence[str], chosen: Sequence[str]) -> tuple[bool, list[str]]:
    """Run the chosen tests on workers. Returns whether all passed in the end and few were unstable, and the ids of the
    unstable ones.
    """
    with tempfile.TemporaryDirectory() as cache:
        keep = ("-o", f"cache_dir={cache}")
        if run([*keep, *workers, *chosen]):
            return True, []
        failed = last_failed(Path(cache))
        if not 0 < len(failed) <= MOST:
            return False, []
        again = run([*keep, "--last-failed", "--last-failed-no-failures=none", *chosen])
    return again and len(failed) <= MOST_UNSTABLE, failed if again else []


def last_failed(cache: Path) -> list[str]:
    """Return the ids of the tests that failed, from pytest's cache."""
    stored = cache / "v" / "cache" / "lastfailed"
    return sorted(json.loads(stored.read_text())) if stored.exists() else []
