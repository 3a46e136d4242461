"""Mutation of the Python code: changes one place at a time and runs the near-by tests that cover it.

    ./ada prove mutation [--package core/queue] [--seed 1] [--count 100]
    python -m tests.system.mutation core/queue/workers/worker.py:181     the mutants of one line

A sample by seed of each package. Every verdict is stored in data/mutation as soon as it is known: a second call
repeats none that was killed, and tries again what survived. The last lines list what is left. Exit code 1 if fewer
than 85 % of a package are killed.
"""

import argparse
import os
from collections.abc import Iterator
from pathlib import Path

from tests.support.paths import ROOT
from tests.system.mutation.mutants import PACKAGES, Mutant, of_places, sample
from tests.system.mutation.report import WANTED, Report
from tests.system.mutation.trial import Trials


def main() -> int:
    arguments = read_arguments()
    os.nice(arguments.nice)
    reports = [run(arguments, package, mutants) for package, mutants in chosen(arguments)]
    for report in reports:
        print(report.text(), flush=True)
    print("; ".join(report.summary for report in reports))
    return 0 if all(report.share >= WANTED for report in reports) else 1


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.system.mutation", description=__doc__.splitlines()[0])
    parser.add_argument("places", nargs="*", metavar="FILE:LINE", help="the mutants of these lines instead of a sample")
    parser.add_argument("--count", type=int, default=100, help="mutants of each package (100)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--package", action="append", help=f"a folder of code; by default {', '.join(PACKAGES)}")
    parser.add_argument("--budget", type=float, default=10.0, help="seconds of tests for each mutant (10)")
    parser.add_argument("--nice", type=int, default=10, help="the priority of the tests, as of nice (10)")
    parser.add_argument("--keep", type=Path, default=ROOT / "data" / "mutation", help="folder of verdicts and reports")
    return parser.parse_args()


def chosen(arguments: argparse.Namespace) -> Iterator[tuple[str, list[Mutant]]]:
    """(package, its mutants)."""
    if arguments.places:
        mutants = of_places(arguments.places)
        for package in sorted({mutant.package for mutant in mutants}):
            yield package, [mutant for mutant in mutants if mutant.package == package]
        return
    for package in arguments.package or PACKAGES:
        yield package, sample(arguments.count, arguments.seed, [package])


def run(arguments: argparse.Namespace, package: str, mutants: list[Mutant]) -> Report:
    """Tries the mutants whose verdict is not stored yet; writes the report."""
    report = Report(arguments.keep, package, arguments.seed, mutants)
    left = report.undecided()
    if left:
        trials = Trials(package, arguments.keep, arguments.budget)
        for verdict in trials.run(left):
            report.add(verdict)
            print(verdict.line, flush=True)
    report.write()
    return report


if __name__ == "__main__":
    raise SystemExit(main())
