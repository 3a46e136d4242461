"""Which tests run which lines, and how long each takes: near-by tests run once under coverage, a context per test.

It takes minutes, so it is kept by the file of tests, until that file changes, or a file that is to be mutated and that
its tests run: elsewhere an old map still names tests that run a line.
"""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path, PurePath

from coverage import CoverageData

from tests.support.paths import ROOT
from tests.system.mutation.import_lines import groups_of_tests, lines_of_statement

AT_IMPORT = ""
"""Stands among the tests of a line that runs when its module is imported."""

SLOW = 20.0
"""Seconds. A test that takes longer is not run for a mutant, nor measured a second time."""

_Lines = dict[str, dict[int, list[str]]]


@dataclass(frozen=True)
class Measured:
    """One file of tests. `files`: hashes of it and of the code that it runs; `tests`: file → line → test ids;
    `seconds`: how long each test that passed takes; `slow`: tests that are left out.
    """

    files: dict[str, str]
    tests: _Lines
    seconds: dict[str, float]
    slow: list[str]

    def is_current(self, mutated: Collection[str]) -> bool:
        """Return whether the map is that of the file of tests, and of the files that are to be mutated."""
        looked_at = (file for file in self.files if file in mutated or file.startswith("tests/"))
        return all((ROOT / file).exists() and _hash_of(ROOT / file) == self.files[file] for file in looked_at)

    @classmethod
    def load(cls, path: Path) -> "Measured":
        read = json.loads(path.read_text())
        tests = {file: {int(line): ids for line, ids in lines.items()} for file, lines in read.pop("tests").items()}
        return cls(tests=tests, **read)


@dataclass(frozen=True)
class CoverageMap:
    """`tests`: file → line → test ids; `seconds`: how long each test that passed takes."""

    tests: _Lines
    seconds: dict[str, float]

    def covering(self, file: str, line: int, budget: float) -> list[str]:
        """The tests that run this line, the quickest first, as many as take `budget` seconds together: those of the
        file `test_<its name>.py`, those of the package's own directory, and of all. For a line that runs at import:
        those that run what uses it. For a file that runs in other processes only: those of the file
        `test_<its name>.py`.
        """
        found = self._running(file, line) or (None if file in self.tests else self._named(file))
        groups = [found] if found else groups_of_tests(self.tests, file, line)
        folders = tuple(f"tests/{folder}/" for folder in PurePath(file).parents)
        named = [[test for test in group if _is_named_after(test, file)] for group in groups]
        own = [[test for test in group if test.startswith(folders)] for group in groups]
        return list(dict.fromkeys(test for group in (*named, *own, *groups) for test in self._quickest(group, budget)))

    def runs_at_import(self, file: str, line: int) -> bool:
        """Whether importing the module runs this line: then the module must be imported anew to change it."""
        return any(AT_IMPORT in self.tests.get(file, {}).get(one, []) for one in lines_of_statement(file, line))

    def _running(self, file: str, line: int) -> set[str]:
        lines = self.tests.get(file, {})
        return {test for one in lines_of_statement(file, line) for test in lines.get(one, [])} - {AT_IMPORT}

    def _named(self, file: str) -> list[str]:
        return [test for test in self.seconds if _is_named_after(test, file)]

    def _quickest(self, tests: Iterable[str], budget: float) -> list[str]:
        chosen, spent = list[str](), 0.0
        known = (test for test in tests if test in self.seconds)
        for test in sorted(known, key=lambda test: (self.seconds[test], test)):
            spent += self.seconds[test]
            if chosen and spent > budget:
                break
            chosen.append(test)
        return chosen

    @classmethod
    def of(cls, package: str, folder: str, mutated: Collection[str], place: Path, keep: Path) -> "CoverageMap":
        """The lines of `package` that the tests of this folder, and those named after a mutated file, run in the copy
        of the repository at `place`.

        Measures the files of tests of which `keep` has nothing, or something older than the `mutated` files.
        """
        keep = keep / package.replace("/", ".")
        keep.mkdir(parents=True, exist_ok=True)
        files = files_of_tests(folder, mutated)
        stored = {file: keep / f"{file.replace('/', '.')}.json" for file in files}
        known = {file: Measured.load(path) for file, path in stored.items() if path.exists()}
        missing = [file for file in files if file not in known or not known[file].is_current(mutated)]
        slow = [test for file in missing if file in known for test in known[file].slow]
        for file, measured in (measure(package, missing, slow, place) if missing else {}).items():
            stored[file].write_text(json.dumps(asdict(measured)))
            known[file] = measured
        return cls.merged(known.values())

    @classmethod
    def merged(cls, parts: Iterable[Measured]) -> "CoverageMap":
        tests: dict[str, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
        seconds = dict[str, float]()
        for part in parts:
            seconds |= part.seconds
            for file, lines in part.tests.items():
                for line, ids in lines.items():
                    tests[file][line] += ids
        return cls(tests, seconds)


def files_of_tests(folder: str, mutated: Collection[str]) -> list[str]:
    """Return the files of tests of a folder, and those of any folder that are named after a mutated file."""
    tests = ROOT / "tests"
    named = [path for stem in {PurePath(file).stem for file in mutated} for path in tests.rglob(f"test_{stem}.py")]
    return sorted({path.relative_to(ROOT).as_posix() for path in (*(ROOT / folder).rglob("test_*.py"), *named)})


def _is_named_after(test: str, file: str) -> bool:
    return f"/test_{PurePath(file).stem}.py::" in test


def measure(package: str, files: Sequence[str], slow: Sequence[str], place: Path) -> dict[str, Measured]:
    """Runs the tests of these files once under coverage. Those that fail are in no map: they would kill every mutant.

    The tests `slow` are left out.
    """
    with tempfile.TemporaryDirectory() as folder:
        data, durations = Path(folder) / "coverage", Path(folder) / "durations.json"
        words = [f"--cov={package}", "--cov-context=test", "--cov-report=", "-q", "--no-header", "--timeout", "60"]
        words += ["-n", str(min(len(files), os.cpu_count() or 1))]
        words += ["-p", "tests.system.mutation.durations", f"--durations-to={durations}"]
        words += [word for test in slow for word in ("--deselect", test)]
        environment = {**os.environ, "COVERAGE_FILE": str(data), "PYTHONPATH": str(place)}
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words, *files]
        subprocess.run(command, cwd=place, env=environment, stdout=sys.stderr, check=False)
        seconds, late = _read_durations(durations)
        return _by_file(place, files, _contexts(data, place), seconds, [*slow, *late])


def _read_durations(path: Path) -> tuple[dict[str, float], list[str]]:
    """(the seconds of the tests to be used, the tests that are too slow)."""
    read = json.loads(path.read_text())
    late = [test for test, taken in read["seconds"].items() if taken > SLOW]
    return {test: taken for test, taken in read["seconds"].items() if test in read["passed"] and taken <= SLOW}, late


def _by_file(
    place: Path,
    files: Sequence[str],
    tests: Mapping[str, Mapping[int, set[str]]],
    seconds: dict[str, float],
    slow: Sequence[str],
) -> dict[str, Measured]:
    found = {}
    for file in files:
        mine = {test: taken for test, taken in seconds.items() if test.startswith(f"{file}::")}
        covered = {code: _of_tests(lines, mine) for code, lines in tests.items()}
        covered = {
            code: lines for code, lines in covered.items() if any(set(ids) - {AT_IMPORT} for ids in lines.values())
        }
        hashes = {name: _hash_of(place / name) for name in (file, *covered)}
        found[file] = Measured(hashes, covered, mine, [test for test in slow if test.startswith(f"{file}::")])
    return found


def _of_tests(lines: Mapping[int, set[str]], tests: Mapping[str, float]) -> dict[int, list[str]]:
    mine = {*tests, AT_IMPORT}
    return {line: sorted(ids & mine) for line, ids in lines.items() if ids & mine}


def _contexts(path: Path, place: Path) -> dict[str, dict[int, set[str]]]:
    """File → line → the tests that run it, and AT_IMPORT."""
    data = CoverageData(str(path))
    data.read()
    return {
        Path(file).relative_to(place).as_posix(): {
            line: {context.rpartition("|")[0] for context in contexts}
            for line, contexts in data.contexts_by_lineno(file).items()
        }
        for file in data.measured_files()
    }


def _hash_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
