"""The verbs of development: test, check, lock. They need a clone of the repository."""

import os
import subprocess
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path

from cli.command import GOOD, NO, WRONG_USAGE, Command, NotDone, declare_nothing

ROOT = Path(__file__).resolve().parent.parent
WORKERS = ("-n", "2", "--dist", "worksteal")
RESOLVER = "uv==0.13.8"
"""Resolves for every system and Python at once; pip-compile drops what its own machine does not need."""

STEPS: Sequence[tuple[str, Sequence[str]]] = (
    ("format", ("-m", "ruff", "format", "--check", ".")),
    ("lint", ("-m", "ruff", "check", ".")),
    ("types", ("-m", "mypy", ".")),
    ("layers", ("-c", "from importlinter.cli import import_linter as run; run()", "lint")),
)


def declare_test(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--rows", action="store_true", help="list the rows of the specification and their tests; run none"
    )


def test(arguments: Namespace) -> int:
    """Runs pytest on two workers; its exit code becomes 0 or 1."""
    need_clone()
    if arguments.rows:
        return show_rows(arguments.json)
    return GOOD if run_pytest([*WORKERS, *arguments.rest]) == 0 else NO


def show_rows(as_json: bool) -> int:
    form = "json" if as_json else "text"
    return GOOD if run_pytest(["-qq", "--no-header", f"--rows={form}"]) == 0 else NO


def run_pytest(words: Sequence[str]) -> int:
    return run_python(["-m", "pytest", *words])


def run_python(words: Sequence[str]) -> int:
    """Runs the environment's Python in the clone, whatever the caller's directory."""
    sys.stdout.flush()
    return subprocess.run([sys.executable, *words], cwd=ROOT, check=False).returncode


def check(arguments: Namespace) -> int:
    """Every step runs, also after one has failed; pytest comes last, so that its summary ends the output."""
    need_clone()
    failed = [name for name, words in STEPS if not passes(name, words)]
    say("test …")
    if run_pytest([*WORKERS, "--no-skips"]) != 0:
        failed.append("test")
    if failed:
        print(f"ada: check failed: {', '.join(failed)}", flush=True)
    return NO if failed else GOOD


def passes(name: str, words: Sequence[str]) -> bool:
    began = time.monotonic()
    good = run_python(words) == 0
    say(f"{name} {'passed' if good else 'FAILED'} in {time.monotonic() - began:.1f} s")
    return good


def say(line: str) -> None:
    print(f"== {line}", flush=True)


def lock(arguments: Namespace) -> int:
    """Writes both locks, for Python 3.11 and newer on any system; development's is resolved over the runtime's."""
    need_clone()
    if run_python(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", RESOLVER]) != 0:
        raise NotDone(f"cannot install {RESOLVER}, which resolves the dependencies")
    resolve("requirements.lock", [])
    resolve("requirements-dev.lock", ["--constraint", "requirements.lock", "--group", "dev"])
    print("wrote requirements.lock and requirements-dev.lock")
    return GOOD


def resolve(target: str, further: Sequence[str]) -> None:
    """A lock names versions and hashes, never an index or a path: it must serve on everybody's machine."""
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
        raise NotDone(f"the dependencies of pyproject.toml could not be resolved into {target}")


def need_clone() -> None:
    if not (ROOT / "tests").is_dir() or not os.access(ROOT / "pyproject.toml", os.R_OK):
        raise NotDone(f"this verb needs a clone of the repository; {ROOT} is an installed copy", WRONG_USAGE)


COMMANDS = {
    "test": Command(declare_test, test, takes_rest=True),
    "check": Command(declare_nothing, check),
    "lock": Command(declare_nothing, lock),
}
