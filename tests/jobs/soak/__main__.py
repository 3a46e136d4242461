"""`python -m tests.jobs.soak --jobs 300 --seconds 120 --seed 1`: prints one line per blow, then the counts. Exit code 1
if something was found. `--keep DIRECTORY` keeps the logs of all processes and the append-only file.
"""

import asyncio
import logging
import sys
import tempfile
import time
from argparse import ArgumentParser
from pathlib import Path

from tests.jobs.soak.plan import LONG_SECONDS, Plan, short_plan
from tests.jobs.soak.soak import Soak

SHOWN = 30


def main() -> int:
    parser = ArgumentParser(prog="python -m tests.jobs.soak", description=__doc__)
    parser.add_argument("--jobs", type=int, default=Plan.jobs)
    parser.add_argument("--seconds", type=float, default=LONG_SECONDS, help="of blows")
    parser.add_argument("--processes", type=int, default=Plan.processes)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**32)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--short", action="store_true", help="as in `./ada test`")
    given = parser.parse_args()
    logging.getLogger("core").setLevel(logging.ERROR)
    long = Plan(given.seed, given.seconds, given.jobs, given.processes)
    plan = short_plan(given.seed) if given.short else long
    with tempfile.TemporaryDirectory(prefix="ada-jobs-") as own:
        return soak(given.keep or Path(own), plan)


def soak(directory: Path, plan: Plan) -> int:
    began = time.monotonic()

    def log(line: str) -> None:
        print(f"[{time.monotonic() - began:6.1f} s] {line}", flush=True)

    log(f"seed {plan.seed}")
    outcome = asyncio.run(Soak(directory, plan, log).run())
    for finding in outcome.findings[:SHOWN]:
        log(finding)
    print(outcome, flush=True)
    return 0 if outcome.is_good else 1


if __name__ == "__main__":
    sys.exit(main())
