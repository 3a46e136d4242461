"""Which tests run which lines, and how long each takes: one run of near-by tests under coverage, a context per test.

It takes minutes, so it is kept until the code or the tests change.
"""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from coverage import CoverageData

from tests.system.mutation.import_lines import groups_of_tests


@dataclass(frozen=True)
class CoverageMap:
    """`tests`: file → line → test ids; `seconds`: how long each test that passed takes."""

    tests: dict[str, dict[int, list[str]]]
    seconds: dict[str, float]

    def covering(self, file: str, line: int, budget: float) -> list[str]:
        """The tests that run this line, the quickest first, as many as take `budget` seconds together: those of the
        package's own directory, and of all. For a line that runs at import: those that run what uses it. For a file
        that runs in other processes only: those of the file `test_<its name>.py`.
        """
        found = self.tests.get(file, {}).get(line) or (None if file in self.tests else self._named(file))
        groups = [found] if found else groups_of_tests(self.tests, file, line)
        folders = tuple(f"tests/{folder}/" for folder in PurePath(file).parents)
        own = [[test for test in group if test.startswith(folders)] for group in groups]
        return list(dict.fromkeys(test for group in (*own, *groups) for test in self._quickest(group, budget)))

    def _named(self, file: str) -> list[str]:
        return [test for test in self.seconds if f"/test_{PurePath(file).stem}.py::" in test]

    def _quickest(self, tests: Iterable[str], budget: float) -> list[str]:
        chosen, spent = list[str](), 0.0
        for test in sorted(tests, key=lambda test: (self.seconds.get(test, 1.0), test)):
            spent += self.seconds.get(test, 1.0)
            if chosen and spent > budget:
                break
            chosen.append(test)
        return chosen

    @classmethod
    def of(cls, package: str, chosen: Sequence[str], place: Path, keep: Path) -> "CoverageMap":
        """The lines of `package` that these tests run, in the copy of the repository at `place`.

        Measured anew if `keep` has no map of the same code.
        """
        stored = keep / f"{package.replace('/', '.')}-{_hash_of(place)}.json"
        if not stored.exists():
            keep.mkdir(parents=True, exist_ok=True)
            measure(package, chosen, place).save(stored)
        return cls.load(stored)

    def save(self, path: Path) -> None:
        path.write_text(json.dumps({"tests": self.tests, "seconds": self.seconds}))

    @classmethod
    def load(cls, path: Path) -> "CoverageMap":
        read = json.loads(path.read_text())
        tests = {file: {int(line): ids for line, ids in lines.items()} for file, lines in read["tests"].items()}
        return cls(tests, read["seconds"])


def measure(package: str, chosen: Sequence[str], place: Path) -> CoverageMap:
    """Run these tests once under coverage. Those that fail here are in no map: they would kill every mutant."""
    with tempfile.TemporaryDirectory() as folder:
        data, durations = Path(folder) / "coverage", Path(folder) / "durations.json"
        words = [f"--cov={package}", "--cov-context=test", "--cov-report="]
        words += [
            "-p",
            "tests.system.mutation.durations",
            f"--durations-to={durations}",
            "-n",
            "2",
            "-q",
            "--no-header",
        ]
        environment = {**os.environ, "COVERAGE_FILE": str(data), "PYTHONPATH": str(place)}
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words, *chosen]
        subprocess.run(command, cwd=place, env=environment, stdout=sys.stderr, check=False)
        seconds = json.loads(durations.read_text())
        return CoverageMap(_contexts(data, place, seconds), seconds)


def _hash_of(place: Path) -> str:
    found = hashlib.sha256()
    for path in sorted(place.rglob("*.py")):
        found.update(path.relative_to(place).as_posix().encode() + path.read_bytes())
    return found.hexdigest()[:12]


def _contexts(path: Path, place: Path, passed: Iterable[str]) -> dict[str, dict[int, list[str]]]:
    data, known = CoverageData(str(path)), set(passed)
    data.read()
    found: dict[str, dict[int, list[str]]] = {}
    for file in data.measured_files():
        lines = defaultdict[int, set[str]](set)
        for line, contexts in data.contexts_by_lineno(file).items():
            lines[line] |= {context.rpartition("|")[0] for context in contexts} & known
        relative = Path(file).relative_to(place).as_posix()
        found[relative] = {line: sorted(tests) for line, tests in lines.items() if tests}
    return {file: lines for file, lines in found.items() if lines}
