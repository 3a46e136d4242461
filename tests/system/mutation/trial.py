"""Runs tests on mutated copies of the repository."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue

from tests.support.paths import ROOT
from tests.system.mutation.coverage_map import CoverageMap
from tests.system.mutation.mutants import Mutant
from tests.system.mutation.report import Verdict

LEFT_OUT = shutil.ignore_patterns(".*", "__pycache__", "data", "node_modules")
# Seconds beyond ten times what the tests usually take, after which they hang. A busy machine is many times slower, and
# a mutant that is only slow must not count as killed.
GRACE = 120
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


def nearby_tests(package: str) -> list[str]:
    """Return the folder of tests of the package."""
    return [f"tests/{package}"]


class Trials:
    """Tries mutants of one package, several at once, each on a copy of the repository of its own."""

    def __init__(self, package: str, keep: Path, budget: float, at_once: int) -> None:
        self._package, self._keep = package, keep
        self._budget, self._at_once = budget, at_once

    def run(self, mutants: Sequence[Mutant]) -> Iterator[Verdict]:
        """The verdicts, in the order in which they are known."""
        with copies(self._at_once) as places, ThreadPoolExecutor(self._at_once) as pool:
            place = places.get()
            covered = CoverageMap.of(self._package, nearby_tests(self._package), place, self._keep)
            places.put(place)
            for ended in as_completed([pool.submit(self._try, mutant, covered, places) for mutant in mutants]):
                yield ended.result()

    def _try(self, mutant: Mutant, covered: CoverageMap, places: "SimpleQueue[Path]") -> Verdict:
        tests = covered.covering(mutant.file, mutant.line, self._budget)
        if not tests:
            return Verdict(mutant.name, "no test runs this line", "0")
        place = places.get()
        try:
            return verdict_on(mutant, place, tests, sum(covered.seconds.get(test, 1.0) for test in tests))
        finally:
            places.put(place)


def verdict_on(mutant: Mutant, place: Path, tests: Sequence[str], usual: float) -> Verdict:
    """Runs the tests on the mutated copy at `place` until one fails. `usual`: their seconds without the change."""
    whole = (place / mutant.file).read_bytes()
    mutant.apply(place)
    try:
        ended = run_tests(place, ["-x", "--timeout", "60", *tests], usual * 10 + GRACE)
    except subprocess.TimeoutExpired:
        return Verdict(mutant.name, "did not end", "")
    finally:
        (place / mutant.file).write_bytes(whole)
    if ended.returncode == 0:
        return Verdict(mutant.name, "tests pass", str(len(tests)))
    found = _FAILED.search(ended.stdout)
    return Verdict(mutant.name, "failed", found[1] if found else f"exit code {ended.returncode}")


def run_tests(place: Path, words: Sequence[str], limit: float) -> "subprocess.CompletedProcess[str]":
    """Raises TimeoutExpired after `limit` seconds. Then all processes of the tests have ended, too."""
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words],
            cwd=place,
            env={**os.environ, "PYTHONPATH": str(place), "PYTHONDONTWRITEBYTECODE": "1"},
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = process.wait(limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()
            raise
        output.seek(0)
        return subprocess.CompletedProcess(process.args, code, output.read())


@contextmanager
def copies(count: int) -> Iterator["SimpleQueue[Path]"]:
    """Copies of the repository, to be taken and given back."""
    with tempfile.TemporaryDirectory() as folder:
        places = SimpleQueue[Path]()
        for n in range(count):
            place = Path(folder) / f"copy{n}"
            shutil.copytree(ROOT, place, ignore=LEFT_OUT)
            places.put(place)
        yield places
