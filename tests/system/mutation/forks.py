"""A pytest plugin: collects the tests once, then runs the tests of each mutant in a fork of this process.

    -p tests.system.mutation.forks --trials FILE --verdicts-to DESCRIPTOR

A fork changes the code of the functions in memory and on disk, for the processes that tests start. A change that runs
at import cannot be made so: then the fork forgets all modules of the repository and collects anew.

Each failure is checked: the same test must pass without the change, in half the time. So neither a busy machine nor
a test that fails by itself counts as a kill.
"""

import gc
import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import pytest

from tests.system.mutation.live_code import CannotChange, functions_below, replace_code
from tests.system.mutation.mutants import Mutant
from tests.system.mutation.report import Verdict

LIMIT = 4.0
"""Seconds beyond eight times what a test usually takes, after which it hangs."""
COLLECTION = 60.0
"""Seconds until the first test begins: all may have to be imported anew."""
PATIENCE = (1, 5)
"""If a test is slow without the change, too, the machine is busy: then all limits are five times as long."""


@dataclass(frozen=True)
class Trial:
    """`tests`: those to run and the seconds that each usually takes; `anew`: import the modules anew."""

    mutant: Mutant
    tests: dict[str, float]
    anew: bool

    @classmethod
    def read(cls, path: Path) -> "list[Trial]":
        return [cls(**{**one, "mutant": Mutant(**one["mutant"])}) for one in json.loads(path.read_text())]


@dataclass(frozen=True)
class Ending:
    """How a fork ended. `test`: the test that failed or hung, "" if all passed."""

    test: str
    hung: bool = False


PASSED = Ending("")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--trials", type=Path, help="file with the mutants and their tests, as JSON")
    parser.addoption("--verdicts-to", type=int, help="descriptor for the verdicts, a line of JSON each")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    path = session.config.getoption("--trials")
    if path is None:
        return None
    forks = Forks(session.config.rootpath, {item.nodeid: item for item in session.items})
    with os.fdopen(session.config.getoption("--verdicts-to"), "w", buffering=1) as verdicts:
        for trial in Trial.read(path):
            verdicts.write(json.dumps(asdict(forks.verdict(trial))) + "\n")
    return True


class Progress:
    """A plugin: writes each test as it begins, and notes the first failure."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.failed = ""

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.write(f"began {nodeid}")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed = self.failed or report.nodeid

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failed = self.failed or report.nodeid

    def write(self, line: str) -> None:
        os.write(self._descriptor, f"{line}\n".encode())


class Forks:
    """The tests of this process, run in forks of it. `root`: the copy of the repository that is changed."""

    def __init__(self, root: Path, items: dict[str, pytest.Item]) -> None:
        self._root, self._items = root, items
        self._functions = functions_below(root)
        gc.freeze()  # so that a fork shares the memory

    def verdict(self, trial: Trial) -> Verdict:
        """Runs the tests with the change until one fails that passes without it."""
        start, tests = time.monotonic(), {test: taken for test, taken in trial.tests.items() if test in self._items}
        outcome, by = self._outcome(replace(trial, tests=tests))
        return Verdict(trial.mutant.name, outcome, by, round(time.monotonic() - start, 1))

    def _outcome(self, trial: Trial) -> tuple[str, str]:
        left, count = trial, len(trial.tests)
        for patience in PATIENCE:
            while left.tests and (ending := self._changed(left, patience)) != PASSED:
                failed = {ending.test: left.tests[ending.test]} if ending.test in left.tests else left.tests
                control = self._fork(replace(left, tests=failed), patience / 2, lambda: None)
                if control == PASSED:
                    return "did not end" if ending.hung else "failed", ending.test
                if control.hung:
                    break
                left = replace(left, tests={test: taken for test, taken in left.tests.items() if test not in failed})
            else:
                break
        return ("tests pass", str(len(left.tests))) if left.tests else ("no test runs this line", str(count))

    def _changed(self, trial: Trial, patience: float) -> Ending:
        path = self._root / trial.mutant.file
        before = path.read_bytes()
        trial.mutant.apply(self._root)
        after, functions = path.read_bytes(), self._functions.get(str(path), [])
        try:
            return self._fork(trial, patience, lambda: replace_code(functions, path, before, after))
        finally:
            path.write_bytes(before)

    def _fork(self, trial: Trial, patience: float, change: Callable[[], None]) -> Ending:
        reading, writing = os.pipe()
        process = os.fork()
        if process == 0:
            os.close(reading)
            self._child(trial, change, Progress(writing))
        os.close(writing)
        try:
            return _watch(reading, trial.tests, patience)
        finally:
            os.close(reading)
            _end(process)

    def _child(self, trial: Trial, change: Callable[[], None], progress: Progress) -> None:
        os.setsid()
        try:
            progress.write(f"ended {self._failed(trial, change, progress)}")
        finally:
            os._exit(0)

    def _failed(self, trial: Trial, change: Callable[[], None], progress: Progress) -> str:
        try:
            if trial.anew:
                raise CannotChange
            change()
        except CannotChange:
            return run_anew(self._root, list(trial.tests), progress)
        return run_items([self._items[test] for test in trial.tests], progress)


def run_items(items: Sequence[pytest.Item], progress: Progress) -> str:
    """Returns the first test that failed."""
    items[0].config.pluginmanager.register(progress)
    for item, following in zip(items, [*items[1:], None], strict=True):
        item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
        if progress.failed:
            break
    return progress.failed


def run_anew(root: Path, tests: Sequence[str], progress: Progress) -> str:
    """Imports the modules of the repository anew and runs the tests. Returns the first failure."""
    for name, module in list(sys.modules.items()):
        if (getattr(module, "__file__", None) or "").startswith(f"{root}/"):
            del sys.modules[name]
    words = ["-x", "-q", "-p", "no:cacheprovider", f"--basetemp={root.parent / 'anew'}"]
    code = pytest.main([*words, *tests], plugins=[progress])
    return progress.failed or ("" if code == 0 else f"exit code {code}")


def _watch(reading: int, usual: Mapping[str, float], patience: float) -> Ending:
    """Reads what a fork writes, until it has ended, or one test takes too long."""
    limit, current, text = COLLECTION, "import", ""
    while select.select([reading], [], [], limit * patience)[0]:
        data = os.read(reading, 65536)
        *lines, text = (text + data.decode()).split("\n")
        word, _, test = lines[-1].partition(" ") if lines else ("", "", "")
        if not data or word == "ended":
            return Ending(test if word == "ended" else current)
        limit, current = LIMIT + 8 * usual.get(test, 1.0), test
    return Ending(current, hung=True)


def _end(process: int) -> None:
    """Ends the fork and what it has started in its session; servers of tests end with the process that started them."""
    try:
        os.killpg(process, signal.SIGKILL)
    except ProcessLookupError:
        os.kill(process, signal.SIGKILL)  # not yet a session of its own
    os.waitpid(process, 0)
