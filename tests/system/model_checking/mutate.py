"""Mutation testing of the functions: leaves out each `redis_call(…)` of lua/ in turn and runs tests until one fails.

    ./ada prove functions
    python -m tests.system.model_checking.mutate [PART OF A NAME …] [--seconds 60] [--tests FILE] [--every N]

Works on two copies of the clone in parallel. The first run of the tests records which calls each test reaches. Then,
for each mutant, the tests that reach its call run, fast and successful ones first. Mutants that no test notices are
listed at the end, and the exit code is 1.
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

from tests.support.paths import ROOT
from tests.system.model_checking.mutants import Mutant, mutants

COPIED = (
    "bench",
    "cli",
    "core",
    "couriers",
    "delivery",
    "docs",
    "jobs",
    "lua",
    "providers",
    "sandbox",
    "scenarios",
    "tests",
    "tools",
)
AT_ONCE = 2
# The tests that run scripts. The state machines are left out: their runs are random.
CHOSEN = (
    *(
        "tests/system/model_checking",
        "tests/core/audit",
        "tests/core/admission",
        "tests/couriers/sending",
        "tests/core/deliveries",
        "tests/core/queue",
    ),
    *("tests/core/redis", "tests/cli/test_audit.py"),
)
NOT_CHOSEN = (*("two_scripts", "half_script", "mutant", "does_what_the_model_does", "do_what_the_model_does"),)
# Every script in every state: these tests find most mutants per second.
EVERY_STATE = "no_single_script"
LIMIT = 300
"""Seconds after which a run of tests that does not end counts as failed."""
PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "--timeout", "60")


@dataclass
class Tests:
    """Facts of the tests: which calls each reaches, how long it takes, how many mutants it found."""

    known: Mapping[str, Mapping[str, object]]
    seconds: float
    found: Counter[str] = field(default_factory=Counter)

    def of(self, mutant: Mutant) -> list[list[str]]:
        """The tests to run for a mutant, in two runs: every script in every state; then the cheapest per finding."""
        fitting = [test for test, facts in self.known.items() if mutant.place in _strings(facts["places"])]
        fitting.sort(key=lambda test: self._took(test) / (1 + self.found[test]))
        every_state = [test for test in fitting if EVERY_STATE in test]
        chosen, spent = list[str](), 0.0
        for test in fitting:
            spent += 0 if test in every_state else self._took(test)
            if test not in every_state and (spent <= self.seconds or not chosen):
                chosen.append(test)
        return [tests for tests in (every_state, chosen) if tests]

    def _took(self, test: str) -> float:
        return float(str(self.known[test]["seconds"]))


def _strings(value: object) -> list[str]:
    assert isinstance(value, list)
    return [str(item) for item in value]


def copy_to(place: Path) -> Path:
    """Copies the clone without its git history."""
    for name in COPIED:
        shutil.copytree(ROOT / name, place / name, ignore=shutil.ignore_patterns("__pycache__"))
    for path in ROOT.iterdir():
        if path.is_file() and path.name != ".git":
            shutil.copy(path, place / path.name)
    return place


def run(words: Sequence[str], place: Path, limit: float) -> tuple[int, str]:
    """Runs Python in a copy. Returns its exit code (-1 after `limit` seconds) and output; ends its children."""
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
        output, _ = process.communicate(timeout=limit)
        return process.returncode, output
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return -1, process.communicate()[0]


def recorded(place: Path) -> Mapping[str, Mapping[str, object]]:
    """Runs the chosen tests on the original scripts; returns the notes of the recorder."""
    notes = place / "notes.json"
    words = [*PYTEST, *CHOSEN, "-k", " and ".join(f"not {name}" for name in NOT_CHOSEN)]
    _, output = run([*words, "-p", "tests.system.model_checking.recorder", "--notes-to", str(notes)], place, 1800)
    log(output.splitlines()[-1])
    found: Mapping[str, Mapping[str, object]] = json.loads(notes.read_text())
    return found


def killer_of(mutant: Mutant, tests: Tests, place: Path) -> str:
    """The test that fails with this mutant, or ""."""
    mutant.write(place / "lua")
    try:
        return next(filter(None, (first_to_fail(chosen, place) for chosen in tests.of(mutant))), "")
    finally:
        mutant.restore(place / "lua")


def first_to_fail(chosen: Sequence[str], place: Path) -> str:
    code, output = run([*PYTEST, "-x", "-rfE", *chosen], place, LIMIT)
    if code == 0:
        return ""
    lines = [line.split(" ")[1] for line in output.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    return lines[0] if lines else "no end"


def try_all(chosen: Sequence[Mutant], tests: Tests, places: Sequence[Path]) -> list[Mutant]:
    """Returns the mutants that no test notices."""
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
        log(f"{'killed' if killer else 'SURVIVED'} in {time.monotonic() - began:.0f} s: {mutant.name} [{killer}]")
        return not killer

    with ThreadPoolExecutor(len(places)) as threads:
        return [mutant for mutant, survived in zip(chosen, threads.map(try_one, chosen), strict=True) if survived]


def log(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - a command


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="parts of names of mutants, for example `queue/modules/lane.lua:33 `")
    parser.add_argument("--seconds", type=float, default=60, help="of tests for each mutant, at most (60)")
    parser.add_argument("--every", type=int, default=1, help="try only every Nth mutant")
    parser.add_argument("--tests", type=Path, help="where the notes of the first run are kept; read if the file exists")
    given = parser.parse_args()
    chosen = [mutant for mutant in mutants() if not given.names or any(name in mutant.name for name in given.names)]
    with tempfile.TemporaryDirectory() as place:
        places = [copy_to(Path(place) / str(n)) for n in range(AT_ONCE)]
        known = json.loads(given.tests.read_text()) if given.tests and given.tests.exists() else recorded(places[0])
        if given.tests:
            given.tests.write_text(json.dumps(known))
        survivors = try_all(chosen[:: given.every], Tests(known, given.seconds), places)
    log(f"{len(chosen[:: given.every])} mutants, {len(survivors)} survived:")
    for mutant in survivors:
        log(f"  {mutant.name}")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
