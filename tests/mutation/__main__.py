"""Mutation of the Python code: changes one place at a time and runs the tests that cover it.

    python -m tests.mutation [--count 300] [--seed 1] [--package core] [--coverage FILE] [--budget 20]
    python -m tests.mutation core/queue/worker.py:181 --coverage FILE     the mutants of one line

Works on copies of the repository. A mutant is killed when a test fails or does not end. Survivors are
listed with their place; exit code 1 if more than 5 % survive. `--coverage FILE` keeps the map of lines to tests between
runs: it takes minutes to make.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue

from tests.mutation.coverage_map import CoverageMap, measure
from tests.mutation.mutants import PACKAGES, ROOT, Mutant, of_places, sample

COPIED = (
    *("bench", "bots", "cli", "core", "couriers", "delivery", "docs", "examples"),
    *("jobs", "lua", "sandbox", "scenarios", "tests"),
)
WANTED = 0.95
# Seconds beyond ten times what the tests usually take, after which they hang. A busy machine is many times slower, and
# a mutant that is only slow must not count as killed.
GRACE = 300


def killed(mutant: Mutant, place: Path, tests: list[str], usual: float) -> bool:
    """Whether one of the tests fails, or does not end, on the mutated copy at `place`. `usual`: their seconds."""
    whole = (place / mutant.file).read_bytes()
    mutant.apply(place)
    words = ["-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--timeout", "60", *tests]
    try:
        ended = subprocess.run(
            [sys.executable, *words],
            cwd=place,
            env={**os.environ, "PYTHONPATH": str(place), "PYTHONDONTWRITEBYTECODE": "1"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=usual * 10 + GRACE,
        )
    except subprocess.TimeoutExpired:
        return True
    finally:
        (place / mutant.file).write_bytes(whole)
    return ended.returncode != 0


@contextmanager
def copies(count: int) -> Iterator["SimpleQueue[Path]"]:
    """Copies of the repository, to be taken and given back."""
    with tempfile.TemporaryDirectory() as folder:
        places = SimpleQueue[Path]()
        for n in range(count):
            place = Path(folder) / f"copy{n}"
            for name in COPIED:
                shutil.copytree(ROOT / name, place / name, ignore=shutil.ignore_patterns("__pycache__"))
            for name in ("pyproject.toml", "README.md", "ada", "docker-compose.yml", "Dockerfile"):
                shutil.copy(ROOT / name, place / name)
            places.put(place)
        yield places


def survivors(mutants: list[Mutant], covered: CoverageMap, budget: float, at_once: int) -> list[tuple[Mutant, str]]:
    """(mutant, why it survived) of those that no test kills."""
    with copies(at_once) as places, ThreadPoolExecutor(at_once) as pool:

        def why_it_survives(mutant: Mutant) -> str:
            tests = covered.covering(mutant.file, mutant.line, budget)
            usual = sum(covered.seconds.get(test, 1.0) for test in tests)
            if not tests:
                return "no test runs this line"
            place = places.get()
            try:
                verdict = "" if killed(mutant, place, tests, usual) else f"{len(tests)} tests pass"
            finally:
                places.put(place)
            print("killed  " if not verdict else "SURVIVED", mutant.name, flush=True)
            return verdict

        return [(mutant, why) for mutant, why in zip(mutants, pool.map(why_it_survives, mutants), strict=True) if why]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__.splitlines()[0])
    parser.add_argument("places", nargs="*", metavar="FILE:LINE", help="the mutants of these lines instead of a sample")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--package", action="append", choices=PACKAGES, help="all three unless given")
    parser.add_argument("--coverage", type=Path, help="file that keeps the map of lines to tests")
    parser.add_argument("--budget", type=float, default=20.0, help="seconds of tests per mutant")
    parser.add_argument("--at-once", type=int, default=2, help="mutants at the same time")
    arguments = parser.parse_args()
    mutants = of_places(arguments.places) or sample(arguments.count, arguments.seed, arguments.package or PACKAGES)
    if arguments.coverage and arguments.coverage.exists():
        covered = CoverageMap.load(arguments.coverage)
    else:
        covered = measure()
        if arguments.coverage:
            covered.save(arguments.coverage)
    left = survivors(mutants, covered, arguments.budget, arguments.at_once)
    for mutant, why in left:
        print(f"survived: {mutant.name} ({why})")
    share = 1 - len(left) / len(mutants)
    print(f"{len(mutants) - len(left)} of {len(mutants)} killed ({share:.1%}), seed {arguments.seed}")
    return 0 if share >= WANTED else 1


if __name__ == "__main__":
    raise SystemExit(main())
