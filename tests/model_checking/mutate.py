"""Mutation of the scripts: leaves out each `redis.call(…)` of lua/ in turn and runs tests until one fails.

    python -m tests.model_checking.mutate [PART OF A NAME …] [--seconds 60] [--tests FILE] [--every N]

Works on copies of the clone, two at a time. First the tests are run as they are, noting which calls each of them
reaches; then for each mutant those that reach it, quick ones and those that have found others first. What no test
notices is listed; docs/proof.md argues each that is left.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue

from tests.model_checking.mutants import Mutant, mutants

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("bench", "cli", "core", "couriers", "delivery", "docs", "lua", "sandbox", "tests")
AT_ONCE = 2
# Where the scripts are tried. The state machines are left out: what they find is another thing at every run.
CHOSEN = ("tests/model_checking", "tests/core", "tests/queue", "tests/audit", "tests/cli/test_audit.py")
NOT_CHOSEN = (
    *("two_scripts", "three_scripts", "half_script", "mutant", "model"),
    *("test_queue_machine", "test_delivery_machine"),
)
# Every script in every state: what finds most in a second.
ORDERS = "no_single_script"
LIMIT = 300
"""Seconds, after which tests that do not end have failed."""
PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "--timeout", "60")


@dataclass
class Tests:
    """What is known of the tests: which calls each reaches, how long it takes, how many mutants it found."""

    known: Mapping[str, Mapping[str, object]]
    seconds: float
    found: Counter[str] = field(default_factory=Counter)

    def of(self, mutant: Mutant) -> list[list[str]]:
        """Those to be run, in two runs: every script in every state; then what costs least for what it finds."""
        fitting = [test for test, facts in self.known.items() if mutant.place in _strings(facts["places"])]
        fitting.sort(key=lambda test: self._took(test) / (1 + self.found[test]))
        orders = [test for test in fitting if ORDERS in test]
        chosen, spent = list[str](), 0.0
        for test in fitting:
            spent += 0 if test in orders else self._took(test)
            if test not in orders and (spent <= self.seconds or not chosen):
                chosen.append(test)
        return [tests for tests in (orders, chosen) if tests]

    def _took(self, test: str) -> float:
        return float(str(self.known[test]["seconds"]))


def _strings(value: object) -> list[str]:
    assert isinstance(value, list)
    return [str(item) for item in value]


def copy_to(place: Path) -> Path:
    """A clone without its history, for a mutant to live in."""
    for name in COPIED:
        shutil.copytree(ROOT / name, place / name, ignore=shutil.ignore_patterns("__pycache__"))
    for path in ROOT.iterdir():
        if path.is_file() and path.name != ".git":
            shutil.copy(path, place / path.name)
    return place


def run(words: Sequence[str], place: Path, limit: float) -> tuple[int, str]:
    """Python in a copy; its exit code (or -1 when it did not end) and what it said. It and all it started has ended."""
    process = subprocess.Popen(
        [sys.executable, *words],
        cwd=place,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    try:
        told, _ = process.communicate(timeout=limit)
        return process.returncode, told
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return -1, process.communicate()[0]


def recorded(place: Path) -> Mapping[str, Mapping[str, object]]:
    """Runs the chosen tests as they are."""
    notes = place / "notes.json"
    words = [*PYTEST, *CHOSEN, "-k", " and ".join(f"not {name}" for name in NOT_CHOSEN)]
    _, told = run([*words, "-p", "tests.model_checking.recorder", "--notes-to", str(notes)], place, 1800)
    say(told.splitlines()[-1])
    found: Mapping[str, Mapping[str, object]] = json.loads(notes.read_text())
    return found


def killer_of(mutant: Mutant, tests: Tests, place: Path) -> str:
    """The test that notices, or ""."""
    mutant.write(place / "lua")
    try:
        return next(filter(None, (first_to_fail(chosen, place) for chosen in tests.of(mutant))), "")
    finally:
        mutant.heal(place / "lua")


def first_to_fail(chosen: Sequence[str], place: Path) -> str:
    code, told = run([*PYTEST, "-x", "-rfE", *chosen], place, LIMIT)
    if code == 0:
        return ""
    lines = [line.split(" ")[1] for line in told.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    return lines[0] if lines else "no end"


def try_all(chosen: Sequence[Mutant], tests: Tests, places: Sequence[Path]) -> list[Mutant]:
    """The survivors."""
    free: SimpleQueue[Path] = SimpleQueue()
    for place in places:
        free.put(place)

    def try_one(mutant: Mutant) -> bool:
        place, began = free.get(), time.monotonic()
        try:
            killer = killer_of(mutant, tests, place)
        finally:
            free.put(place)
        tests.found[killer] += 1
        say(f"{'killed' if killer else 'SURVIVED'} in {time.monotonic() - began:.0f} s: {mutant.name} [{killer}]")
        return not killer

    with ThreadPoolExecutor(len(places)) as threads:
        return [mutant for mutant, survived in zip(chosen, threads.map(try_one, chosen), strict=True) if survived]


def say(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - a command


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "names", nargs="*", help="parts of names of mutants, as lua/ names files: `parts/ready.lua:35 `"
    )
    parser.add_argument("--seconds", type=float, default=60, help="of tests, at most, for each mutant")
    parser.add_argument("--every", type=int, default=1, help="every so many only")
    parser.add_argument("--tests", type=Path, help="keeps what was noted of the tests, or has it already")
    given = parser.parse_args()
    chosen = [mutant for mutant in mutants() if not given.names or any(name in mutant.name for name in given.names)]
    with tempfile.TemporaryDirectory() as place:
        places = [copy_to(Path(place) / str(n)) for n in range(AT_ONCE)]
        known = json.loads(given.tests.read_text()) if given.tests and given.tests.exists() else recorded(places[0])
        if given.tests:
            given.tests.write_text(json.dumps(known))
        survivors = try_all(chosen[:: given.every], Tests(known, given.seconds), places)
    say(f"{len(chosen[:: given.every])} mutants, {len(survivors)} survived:")
    for mutant in survivors:
        say(f"  {mutant.name}")


if __name__ == "__main__":
    main()
