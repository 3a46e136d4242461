"""`./ada prove [PART …]`: the long forms of the tests that prove by volume (docs/proof.md).

`./ada test` runs a short form of each part. Needs a clone of the repository.
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import IO

from cli.command import FAILURE, SUCCESS, WRONG_USAGE, Command, CommandFailed, closest
from cli.commands.development.checks import ROOT, WORKERS, need_clone

HISTORY_MACHINES = ("tests/core/deliveries/test_delivery_machine.py", "tests/core/deliveries/test_first_machine.py")
SCENARIOS = ("scenarios", "waiting_scenarios", "storm_of_events", "storm_of_tenants")
PYTEST = ("-m", "pytest", *WORKERS, "-q", "--long", "--no-skips")
PARTS: Mapping[str, tuple[str, Sequence[str]]] = {
    # part: (what it proves, the arguments of Python)
    "interleavings": (
        "three scripts in any order leave nothing stuck",
        (*PYTEST, "tests/system/model_checking/test_interleavings.py"),
    ),
    "cuts": (
        "an append-only file cut at any of its last 4,000 bytes loads as after a whole script",
        (*PYTEST, "tests/system/model_checking/test_cuts.py"),
    ),
    "histories": (
        "random operations on queue and deliveries do what the models do",
        (*PYTEST, "tests/core/queue/test_machine.py", *HISTORY_MACHINES),
    ),
    "fuzz": (
        "random requests get a documented response",
        (*PYTEST, "tests/delivery/test_schemathesis.py", "tests/delivery/test_fuzz.py"),
    ),
    "university": (
        "ten thousand people are served while all processes are killed",
        (*PYTEST, "tests/system/end_to_end"),
    ),
    "soak": (
        "minutes of faults lose, double and reorder nothing",
        (*PYTEST, "tests/system/soak", "tests/core/audit/test_live.py"),
    ),
    "scenarios": (
        "bots lose, double and mix no message, variable, answer or request while processes are killed",
        (*PYTEST, *(f"tests/system/crash/test_{name}.py" for name in SCENARIOS)),
    ),
    "answers": (
        "20,000 presses of 10,000 people count once while processes are killed and primaries are lost",
        ("-m", "pytest", "-q", "-n", "0", "--long", "--no-skips", "tests/system/crash/test_storm_of_answers.py"),
    ),
    "replies": (
        "20,000 replies of 5,000 people reach their teachers once, and nobody else, under kills and fail-overs",
        ("-m", "pytest", "-q", "-n", "0", "--long", "--no-skips", "tests/system/crash/test_storm_of_replies.py"),
    ),
    "jobs": (
        "300 jobs of users lose and double nothing under two minutes of blows",
        ("-m", "tests.jobs.soak"),
    ),
    "failover": (
        "ten minutes of lost primaries lose and double nothing that was accepted",
        ("-m", "tests.system.failover"),
    ),
    "everything": (
        "sends, answers, replies, bots, jobs, imports, backups and restores go on under kills and lost primaries",
        ("-m", "tests.system.failover", "--everything"),
    ),
    "freezes": (
        "a primary that wakes before, while or after it is replaced loses and doubles nothing that was accepted",
        ("-m", "tests.system.failover", "--usual"),
    ),
    "cluster": (
        "ten minutes of lost primaries of a cluster lose, double and reorder nothing that was accepted",
        ("-m", "tests.system.failover", "--cluster"),
    ),
    "slots": (
        "slots that move during 10,000 sends and 100,000 tasks lose, double and reorder nothing",
        ("-m", "tests.system.failover", "--slots"),
    ),
    "benchmarks": ("every benchmark runs and counts what it should", (*PYTEST, "tests/bench")),
    "functions": (
        "every call of the functions of the server is needed by a test",
        ("-m", "tests.system.model_checking.mutate"),
    ),
    "mutation": (
        "near-by tests notice 85 of 100 small changes to the Python code of each package",
        ("-m", "tests.system.mutation"),
    ),
}


BOUNDS: Mapping[str, timedelta] = {"scenarios": timedelta(hours=1), "jobs": timedelta(minutes=15)}
"""After this time a part has failed: on a quiet machine it takes less than half of it."""
EVERY = 30.0
"""Seconds between two lines of progress."""
_WIDTH = 80
_CLEANUP = 30.0
"""Seconds that a part has to end its processes when its time is over."""
MEASURED = re.compile(r", seed \d+$")
_BLOWS = {"seed": "--seed", "seconds": "--seconds"}
OPTIONS: Mapping[str, Mapping[str, str]] = {
    # part: option of prove → that of the program
    "mutation": {"seed": "--seed", "count": "--count", "package": "--package"},
    "failover": _BLOWS,
    "everything": {**_BLOWS, "rate": "--rate"},
    "freezes": _BLOWS,
    "cluster": _BLOWS,
    "slots": {"seed": "--seed"},
    "answers": {"seed": "--seed"},
    "replies": {"seed": "--seed"},
    "fuzz": {"seed": "--hypothesis-seed", "count": "--examples"},
    "histories": {"seed": "--hypothesis-seed"},
}
COUNT = "of mutation: how many of each package (100); of fuzz: requests of each operation and phase (300)"


def declare(parser: ArgumentParser) -> None:
    parts = ", ".join(f"{name}: {meaning}" for name, (meaning, _) in PARTS.items())
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"all by default; {parts}")
    parser.add_argument("--package", action="append", metavar="FOLDER", help="of mutation: core/queue, …; repeatable")
    parser.add_argument(
        "--seed",
        type=int,
        help="of mutation: which changes (1); of the forms with lost primaries and slots: which order; of fuzz and "
        "histories: which examples; of answers and replies: what is added to the seeds of their storms (0)",
    )
    parser.add_argument(
        "--seconds", type=float, help="of the forms with lost primaries: how long blows are struck (600)"
    )
    parser.add_argument("--rate", type=float, help="of everything: messages a second on each channel (18)")
    parser.add_argument("--count", type=int, help=COUNT)


def prove(arguments: Namespace) -> int:
    """Run the parts one after another, also after a failure; print one line per part."""
    need_clone()
    check(arguments)
    results = [passes(part, arguments.json, options_of(part, arguments)) for part in arguments.parts or PARTS]
    return SUCCESS if all(results) else FAILURE


def check(arguments: Namespace) -> None:
    """Refuse unknown parts, and options that a named part does not have. Raises CommandFailed."""
    for part in arguments.parts:
        if part not in PARTS:
            known = ", ".join(PARTS)
            raise CommandFailed(f"{part!r} is not one of {known}{closest(part, list(PARTS))}", WRONG_USAGE)
        for name in ("seed", "seconds", "rate", "package", "count"):
            if getattr(arguments, name) is not None and name not in OPTIONS.get(part, {}):
                raise CommandFailed(f"{part} has no --{name}", WRONG_USAGE)


def options_of(part: str, arguments: Namespace) -> list[str]:
    """Return the options of a part that are given; `package` may be given several times."""
    names = OPTIONS.get(part, {}).items()
    return [f"{theirs}={value}" for ours, theirs in names for value in _as_list(getattr(arguments, ours))]


def _as_list(value: object) -> Sequence[object]:
    if isinstance(value, list):
        return value
    return () if value is None else (value,)


def passes(part: str, as_json: bool, options: Sequence[str] = ()) -> bool:
    """Run one part. Prints the lines that end in a seed: what a storm measures. Shows a failure's output on stderr, and
    there every half minute how far the part is.
    """
    meaning, words = PARTS[part]
    began = time.monotonic()
    with tempfile.TemporaryFile() as output:
        code = _run(part, [sys.executable, *words, *options], output)
        lines = _lines(output)
    passed, seconds = code == 0, round(time.monotonic() - began)
    if not passed:
        print("\n".join(lines), file=sys.stderr)
    measured = [line.lstrip(".") for line in lines if MEASURED.search(line)] if passed else []
    summary = next((line.strip("= ") for line in reversed(lines) if line.strip()), "no output")
    if as_json:
        found = {"part": part, "passed": passed, "time": seconds, "summary": summary, "measured": measured}
        print(json.dumps(found), flush=True)
    else:
        print("".join(f"  {line}\n" for line in measured), end="")
        print(f"{part}: {'passed' if passed else 'FAILED'} in {seconds} s: {meaning} ({summary})", flush=True)
    return passed


def _run(part: str, words: Sequence[str], output: IO[bytes]) -> int:
    """Return the exit code of a part, 1 if its time is over. It has a session of its own, so that all its processes end
    with it, also after Ctrl-C.
    """
    bound, began = BOUNDS.get(part), time.monotonic()
    running = subprocess.Popen(words, cwd=ROOT, stdout=output, stderr=output, start_new_session=True)
    try:
        while True:
            try:
                return running.wait(EVERY)
            except subprocess.TimeoutExpired:
                seconds = time.monotonic() - began
                last = next((line.strip() for line in reversed(_lines(output)) if line.strip()), "no output yet")
                print(f"{part}: {seconds:.0f} s: {last}"[:_WIDTH], file=sys.stderr, flush=True)
                if bound is not None and seconds > bound.total_seconds():
                    _end(running)
                    output.write(f"\nnot over after {bound}\n".encode())
                    output.flush()
                    return FAILURE
    finally:
        _end(running)


def _end(running: subprocess.Popen[bytes]) -> None:
    """End the session of a part: its processes may clean up, then they are killed."""
    for sign in (signal.SIGTERM, signal.SIGKILL) if running.poll() is None else ():
        with suppress(ProcessLookupError):
            os.killpg(running.pid, sign)
        with suppress(subprocess.TimeoutExpired):
            running.wait(_CLEANUP)


def _lines(output: IO[bytes]) -> list[str]:
    """Return what a part has written so far. The place in the file is that of the part, too, and stays where it is."""
    file = output.fileno()
    return os.pread(file, os.fstat(file).st_size, 0).decode(errors="replace").splitlines()


COMMANDS = {"prove": Command(declare, prove)}
