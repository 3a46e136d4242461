"""Runs tests on mutated copies of the repository."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path, PurePath

from tests.support.paths import ROOT
from tests.system.mutation.coverage_map import CoverageMap
from tests.system.mutation.forks import Trial
from tests.system.mutation.mutants import Mutant
from tests.system.mutation.report import Verdict

LEFT_OUT = shutil.ignore_patterns(".*", "__pycache__", "data", "node_modules")


def nearby_tests(package: str) -> str:
    """Returns the folder of the package's tests; the one around it for a package without a folder of its own."""
    around = (PurePath(package), *PurePath(package).parents)
    return next(f"tests/{one}" for one in around if (ROOT / "tests" / one).is_dir())


class Trials:
    """Tries the mutants of one package, one after the other."""

    def __init__(self, package: str, keep: Path, budget: float) -> None:
        self._package, self._keep, self._budget = package, keep, budget

    def run(self, mutants: Sequence[Mutant]) -> Iterator[Verdict]:
        """The verdicts, in the order in which they are known."""
        with copy_of_repository() as place:
            mutated = {mutant.file for mutant in mutants}
            nearby, keep = nearby_tests(self._package), self._keep / "coverage"
            covered = CoverageMap.of(self._package, nearby, mutated, place, keep)
            trials = [self._trial(mutant, covered) for mutant in mutants]
            yield from (Verdict(one.mutant.name, "no test runs this line", "0") for one in trials if not one.tests)
            with_tests = [one for one in trials if one.tests]
            if with_tests:
                yield from verdicts_on(with_tests, place)

    def _trial(self, mutant: Mutant, covered: CoverageMap) -> Trial:
        tests = covered.covering(mutant.file, mutant.line, self._budget)
        anew = covered.runs_at_import(mutant.file, mutant.line)
        return Trial(mutant, {test: covered.seconds[test] for test in tests}, anew)


def verdicts_on(trials: Sequence[Trial], place: Path) -> Iterator[Verdict]:
    """Starts the process that collects the tests, and reads its verdicts as they come."""
    file = place.parent / "trials.json"
    file.write_text(json.dumps([asdict(trial) for trial in trials]))
    reading, writing = os.pipe()
    files = sorted({test.partition("::")[0] for trial in trials for test in trial.tests})
    with _collecting(place, [f"--trials={file}", f"--verdicts-to={writing}", *files], writing) as process:
        os.close(writing)
        try:
            with os.fdopen(reading) as lines:
                for line in lines:
                    yield Verdict(**json.loads(line))
        finally:
            process.terminate()


def _collecting(place: Path, words: Sequence[str], descriptor: int) -> "subprocess.Popen[bytes]":
    plugin = ["-p", "tests.system.mutation.forks", f"--basetemp={place.parent / 'tests'}"]
    with (place.parent / "output").open("w") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *plugin, *words],
            cwd=place,
            env={**os.environ, "PYTHONPATH": str(place), "PYTHONDONTWRITEBYTECODE": "1"},
            stdout=output,
            stderr=subprocess.STDOUT,
            pass_fds=[descriptor],
        )


@contextmanager
def copy_of_repository() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        place = Path(folder) / "ada"
        shutil.copytree(ROOT, place, ignore=LEFT_OUT)
        yield place
