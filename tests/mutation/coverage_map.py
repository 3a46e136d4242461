"""Which tests run which lines, and how long each takes: one run of the suite under coverage, a context per test.

`measure()` needs minutes and writes its result to a file; `CoverageMap.load` reads it.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePath

from coverage import CoverageData

from tests.mutation.import_lines import groups_of_tests
from tests.mutation.mutants import PACKAGES, ROOT

# What plays whole installations, measures or mutates: slow, or with code that runs in processes of its own.
LEFT_OUT = ("tests/bench", "tests/deploy", "tests/model_checking", "tests/mutation", "tests/soak")


@dataclass(frozen=True)
class CoverageMap:
    """`tests`: file → line → test ids; `seconds`: how long each test takes."""

    tests: dict[str, dict[int, list[str]]]
    seconds: dict[str, float]

    def covering(self, file: str, line: int, budget: float) -> list[str]:
        """The tests that run this line, the quickest first, as many as take `budget` seconds together: those of the
        package's own directory, and of all. For a line that runs at import: those that run what uses it.
        """
        found = self.tests.get(file, {}).get(line)
        groups = [found] if found else groups_of_tests(self.tests, file, line)
        folders = tuple(f"tests/{part}/" for part in PurePath(file).with_suffix("").parts)
        own = [[test for test in group if test.startswith(folders)] for group in groups]
        return list(dict.fromkeys(test for group in (*own, *groups) for test in self._quickest(group, budget)))

    def _quickest(self, tests: Iterable[str], budget: float) -> list[str]:
        chosen, spent = list[str](), 0.0
        for test in sorted(tests, key=lambda test: (self.seconds.get(test, 1.0), test)):
            spent += self.seconds.get(test, 1.0)
            if chosen and spent > budget:
                break
            chosen.append(test)
        return chosen

    def save(self, path: Path) -> None:
        path.write_text(json.dumps({"tests": self.tests, "seconds": self.seconds}))

    @classmethod
    def load(cls, path: Path) -> "CoverageMap":
        read = json.loads(path.read_text())
        tests = {file: {int(line): ids for line, ids in lines.items()} for file, lines in read["tests"].items()}
        return cls(tests, read["seconds"])


def measure(chosen: list[str] | None = None) -> CoverageMap:
    """Run the suite (or the chosen tests) once under coverage. Raises CalledProcessError if pytest cannot run."""
    with tempfile.TemporaryDirectory() as folder:
        data, durations = Path(folder) / "coverage", Path(folder) / "durations.json"
        words = [*(f"--cov={package}" for package in PACKAGES), "--cov-context=test", "--cov-report="]
        words += ["-p", "tests.mutation.durations", f"--durations-to={durations}", "-n", "2", "-q", "--no-header"]
        words += [f"--ignore={path}" for path in LEFT_OUT]
        command = [sys.executable, "-m", "pytest", *words, *(chosen or ())]
        environment = {"COVERAGE_FILE": str(data)}
        subprocess.run(command, cwd=ROOT, env={**os.environ, **environment}, stdout=sys.stderr, check=False)
        return CoverageMap(_contexts(data), json.loads(durations.read_text()))


def _contexts(path: Path) -> dict[str, dict[int, list[str]]]:
    data = CoverageData(str(path))
    data.read()
    found: dict[str, dict[int, list[str]]] = {}
    for file in data.measured_files():
        lines = defaultdict[int, set[str]](set)
        for line, contexts in data.contexts_by_lineno(file).items():
            lines[line] |= {context.rpartition("|")[0] for context in contexts if "|" in context}
        relative = Path(file).relative_to(ROOT).as_posix()
        found[relative] = {line: sorted(tests) for line, tests in lines.items() if tests}
    return found
