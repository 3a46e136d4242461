"""The verbs of development: test, check, soak, lock, bench (`prove` is in `cli.commands.development.prove`). They need
a clone, `bench` excepted."""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
import tomllib
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TextIO
from xml.etree import ElementTree

from bench import BENCHMARKS, functions_of
from bench.harness.report import Rows
from cli.command import FAILURE, SUCCESS, WRONG_USAGE, Command, CommandFailed, no_arguments
from tools.python_versions import environment_of, further_pythons

ROOT = Path(__file__).resolve().parents[3]
CORES = 2
"""Steps that run at once. The types take as long as the others together."""

WORKERS = ("-n", "auto", "--dist", "loadfile", "--no-loadscope-reorder")
"""`tests.support.distribution` says how many, which tests run on the same one, and which begin first."""

STEPS: Sequence[tuple[str, Sequence[str]]] = (
    ("format", ("-m", "ruff", "format", "--check", ".")),
    ("lint", ("-m", "ruff", "check", ".")),
    ("types", ("-m", "mypy", ".")),
    ("layers", ("-c", "from importlinter.cli import import_linter as run; run()", "lint")),
    ("lua", ("-m", "tools.lua_linter")),
    ("collection", ("-m", "pytest", "--collect-only", "-qq")),
)
"""The last compiles the tests once: the workers would all do it at the same time."""

FURTHER_TESTS = ("tests/couriers/sending", "tests/core/queue", "-k", "not redis")
"""Run also on the newest further Python. The whole suite, with the tests on Debian's Redis, runs on one."""
FURTHER_WORKERS = ("-n", "3", *WORKERS[2:])
"""Few, because each compiles the tests for that Python: no step has done it before."""


def declare_test(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--rows", action="store_true", help="list the rows of the specification and their tests; run none"
    )


def test(arguments: Namespace) -> int:
    """Run pytest on several workers. Returns 0 or 1."""
    need_clone()
    if arguments.rows:
        return show_rows(arguments)
    return run_tests(arguments.rest, arguments.json)


def show_rows(arguments: Namespace) -> int:
    words = ["--json"] if arguments.json else []
    return SUCCESS if run_python(["-m", "tests.support.rows", *words, *arguments.rest]) == 0 else FAILURE


def run_tests(words: Sequence[str], as_json: bool) -> int:
    """Run the tests; return the exit code. With JSON, the output of pytest goes to stderr and one object with its
    totals to stdout.
    """
    pytest = ["-m", "pytest", *WORKERS, *words]
    if not as_json:
        return SUCCESS if run_python(pytest) == 0 else FAILURE
    with tempfile.TemporaryDirectory() as directory:
        report = Path(directory) / "report.xml"
        code = run_python([*pytest, f"--junitxml={report}"], output=sys.stderr)
        print(json.dumps({"step": "test", "passed": code == 0, **totals(report)}), flush=True)
    return SUCCESS if code == 0 else FAILURE


def totals(report: Path) -> dict[str, float]:
    """Return the totals of pytest; empty if it ended before it wrote a report."""
    if not report.exists():
        return {}
    suite = ElementTree.parse(report).find("testsuite")
    found = suite.attrib if suite is not None else {}
    return {name: float(found.get(name, 0)) for name in ("tests", "failures", "errors", "skipped", "time")}


def run_python(
    words: Sequence[str],
    output: TextIO | None = None,
    python: str | Path = sys.executable,
    errors: TextIO | None = None,
) -> int:
    """Run Python in the directory of the clone. Returns its exit code.

    Bytecode is kept, whatever the environment says: the tests start hundreds of processes with the same modules.
    """
    sys.stdout.flush()
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    return subprocess.run(
        [python, *words], cwd=ROOT, env=environment, stdout=output, stderr=errors, check=False
    ).returncode


def check(arguments: Namespace) -> int:
    """Run every step, also after a failure, and some tests on the newest further Python of this machine. The whole
    suite is last. Tests that failed run once more, alone (docs/decisions/0060).
    """
    need_clone()
    with ThreadPoolExecutor(CORES) as pool:
        passed = pool.map(lambda step: passes(step[0], step[1], arguments.json), STEPS)
    failed = [name for (name, _), good in zip(STEPS, passed, strict=True) if not good]
    for version, program in list(further_pythons().items())[-1:]:
        python, name = environment_of(version, program, ROOT), f"tests on Python {version}"
        if not python or not suite_passes(name, ["-q", *FURTHER_TESTS], arguments.json, python, FURTHER_WORKERS):
            failed.append(name)
    if not suite_passes("test", ["--no-skips", "--durations=20"], arguments.json):
        failed.append("test")
    if failed and not arguments.json:
        print_failures(failed)
    return FAILURE if failed else SUCCESS


def print_failures(failed: Sequence[str]) -> None:
    """Print the last lines of a check. As a skipped test is a failure here, so is a step without its program."""
    from tools import lua_linter  # it needs the libraries, which a machine without them has not for `--help`

    if not lua_linter.is_installed():
        print_step(f"lua skipped: {lua_linter.MISSING}")
    print(f"ada: check failed: {', '.join(failed)}", flush=True)


def passes(name: str, words: Sequence[str], as_json: bool) -> bool:
    """Run a step beside others; its output is printed if it failed."""
    began = time.monotonic()
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        good = run_python(words, output, errors=output) == 0
        output.seek(0)
        if not good:
            print(output.read(), end="", file=sys.stderr if as_json else sys.stdout, flush=True)
    report(name, good, began, as_json)
    return good


def suite_passes(
    name: str,
    chosen: Sequence[str],
    as_json: bool,
    python: str | Path = sys.executable,
    workers: Sequence[str] = WORKERS,
) -> bool:
    """Run these tests; the names of those that passed only alone are in the report."""

    def run(words: Sequence[str]) -> bool:
        return run_python(["-m", "pytest", *words], sys.stderr if as_json else None, python) == 0

    if not as_json:
        print_step(f"{name} …")
    began = time.monotonic()
    good, unstable = run_twice(run, workers, chosen)
    report(name, good, began, as_json, unstable)
    return good


def report(name: str, good: bool, began: float, as_json: bool, unstable: Sequence[str] = ()) -> None:
    took = round(time.monotonic() - began, 1)
    if as_json:
        print(json.dumps({"step": name, "passed": good, "time": took, "unstable": unstable}), flush=True)
        return
    for test in unstable:
        print_step(f"unstable: {test} failed beside other tests and passed alone")
    if len(unstable) > MOST_UNSTABLE:
        print_step(f"{len(unstable)} tests passed only alone; {MOST_UNSTABLE} may: mend them, or give them more time")
    print_step(f"{name} {'passed' if good else 'FAILED'} in {took} s")


def print_step(line: str) -> None:
    print(f"== {line}", flush=True)


def declare_soak(parser: ArgumentParser) -> None:
    parser.add_argument("--minutes", type=float, default=1.0, help="how long the faults last (1)")
    parser.add_argument("--seed", type=int, help="repeat the faults of an earlier run; its first line shows the seed")
    parser.add_argument("--rate", type=float, default=60.0, metavar="N", help="tasks put per second (60)")
    parser.add_argument("--appendfsync", choices=["always", "everysec", "no"], default="no")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep journals, logs and the server's files here")


def soak(arguments: Namespace) -> int:
    """Run in a child process: it belongs to the tests, which are not installed."""
    need_clone()
    given = ((name, getattr(arguments, name)) for name in ("minutes", "seed", "rate", "appendfsync", "keep"))
    words = [word for name, value in given if value is not None for word in (f"--{name}", str(value))]
    words += ["--json"] if arguments.json else []
    return SUCCESS if run_python(["-m", "tests.system.soak", *words]) == 0 else FAILURE


def lock(arguments: Namespace) -> int:
    """Write both lock files, for Python 3.11 and newer on any system. Development uses the versions of the runtime."""
    need_clone()
    # A clone installs the extras, too: they are small, and are imported only by the settings that need them.
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = [word for name in project["optional-dependencies"] for word in ("--extra", name)]
    resolve("requirements.lock", extras)
    resolve("requirements-dev.lock", ["--constraint", "requirements.lock", *extras, "--group", "dev"])
    print("wrote requirements.lock and requirements-dev.lock")
    return SUCCESS


def resolve(target: str, further: Sequence[str]) -> None:
    """Write versions and hashes, but no index and no path: the file must work on every machine."""
    fixed = [
        "--universal",
        "--python-version",
        "3.11",
        "--generate-hashes",
        "--no-emit-index-url",
        "--no-header",
        "--quiet",
    ]
    if run_python(["-m", "uv", "pip", "compile", *fixed, *further, "pyproject.toml", "--output-file", target]) != 0:
        raise CommandFailed(f"the dependencies of pyproject.toml could not be resolved into {target}")


def need_clone() -> None:
    if not (ROOT / "tests").is_dir() or not os.access(ROOT / "pyproject.toml", os.R_OK):
        raise CommandFailed(f"this verb needs a clone of the repository; {ROOT} is an installed copy", WRONG_USAGE)


def declare_bench(parser: ArgumentParser) -> None:
    """Import every benchmark, so that `bench --help` shows the options of each."""
    names = parser.add_subparsers(dest="benchmark", required=True, metavar="NAME", title="benchmarks")
    for name, (path, text) in BENCHMARKS.items():
        declare, measure = functions_of(name)
        description = measure.__doc__ or sys.modules[path].__doc__
        subparser = names.add_parser(
            name, help=text, description=description, formatter_class=RawDescriptionHelpFormatter, allow_abbrev=False
        )
        declare(subparser)


def run_bench(arguments: Namespace) -> int:
    """Measure the figures of docs/performance.md. Each benchmark starts its own server and processes."""
    _, measure = functions_of(arguments.benchmark)
    asyncio.run(measure(arguments, Rows(arguments.json)))
    return SUCCESS


COMMANDS = {
    "test": Command(declare_test, test, takes_rest=True),
    "check": Command(no_arguments, check),
    "soak": Command(declare_soak, soak),
    "lock": Command(no_arguments, lock),
    "bench": Command(declare_bench, run_bench),
}


MOST = 5
"""Tests that are run once more."""

MOST_UNSTABLE = 2
"""Tests that may pass only at the second run."""

RunPytest = Callable[[Sequence[str]], bool]
"""Runs pytest with these arguments; returns whether it succeeded."""


def run_twice(run: RunPytest, workers: Sequence[str], chosen: Sequence[str]) -> tuple[bool, list[str]]:
    """Run the chosen tests on workers, and once more those that failed, one after the other on the then quiet machine.
    Returns whether all passed in the end and few were unstable, and the ids of the unstable ones.

    The tests use real servers, processes and clocks, six at a time on two cores. A test that fails only then is
    *unstable*: it is named, and it does not fail the check, because its failure shows nothing about the change that is
    checked (docs/decisions/0060). More than `MOST_UNSTABLE` such tests fail the check: the suite as a whole is no
    longer trusted then. More than `MOST` failures are never only the machine: then there is no second run.
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
