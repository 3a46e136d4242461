"""`./ada soak --minutes 30`: prints one line per fault, then the counts. Exit code 1 if a count is not 0."""

import asyncio
import json
import logging
import sys
import tempfile
import time
from argparse import ArgumentParser
from pathlib import Path

from tests.system.soak.soak import Outcome, Plan, Soak

SHOWN = 20


def main() -> int:
    parser = ArgumentParser(prog="ada soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**32)
    parser.add_argument("--rate", type=float, default=60.0)
    parser.add_argument("--appendfsync", choices=["always", "everysec", "no"], default="no")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    logging.getLogger("core").setLevel(logging.ERROR)
    plan = Plan(given.minutes * 60, given.seed, given.rate, given.appendfsync)
    with tempfile.TemporaryDirectory(prefix="ada-soak-") as own:
        return soak(given.keep or Path(own), plan, given.json)


def soak(directory: Path, plan: Plan, as_json: bool) -> int:
    began = time.monotonic()

    def log(line: str) -> None:
        """Prints to stdout, or with --json to stderr: then only the counts go to stdout."""
        stream = sys.stderr if as_json else sys.stdout
        print(f"[{time.monotonic() - began:6.1f} s] {line}", file=stream, flush=True)

    log(f"seed {plan.seed}, appendfsync {plan.appendfsync}")
    outcome = asyncio.run(Soak(directory, plan, log).run())
    for finding in outcome.findings()[:SHOWN]:
        log(finding)
    print(json.dumps(row(plan, outcome)) if as_json else outcome, flush=True)
    return 0 if outcome.is_good else 1


def row(plan: Plan, outcome: Outcome) -> dict[str, object]:
    verdict = outcome.verdict
    counts = {"lost": len(verdict.lost), "doubled": len(verdict.doubled), "out_of_order": len(verdict.out_of_order)}
    counts |= {"audit": len(outcome.violations), "left": len(outcome.left), "faults": outcome.faults}
    counts |= {"tasks": verdict.tasks, "runs": verdict.runs, "repeats": verdict.repeats, "calls": verdict.calls}
    return {"seed": plan.seed, "minutes": plan.seconds / 60, **counts, "ends": verdict.ends}


if __name__ == "__main__":
    sys.exit(main())
