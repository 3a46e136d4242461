"""`python -m tests.system.failover --seconds 600 --seed 1`: prints one line per blow, then the counts. Exit code 1 if
something was found. With `--usual` the Sentinels have their default periods; `--server redis` takes Debian's Redis.
With `--frozen 2.0 2.5 3.0` the primary is frozen for each of these times once, after the first blow, and that is all.
With `--cluster` on three primaries, each with two replicas; with `--slots` slots move there, while
10,000 messages are sent and 100,000 tasks are done.
"""

import asyncio
import itertools
import logging
import re
import sys
import tempfile
import time
from argparse import ArgumentParser, Namespace
from dataclasses import replace
from pathlib import Path

from sandbox.sandbox import Sandbox
from tests.support.cluster import Cluster
from tests.support.replica_set import ReplicaSet
from tests.support.servers import program_of
from tests.system.failover import slots
from tests.system.failover.everything import Everything
from tests.system.failover.failover import Failover, Outcome, Plan
from tests.system.failover.servers_under_blows import under_blows

SHOWN = 5
"""Findings of each kind that are printed."""


def main() -> int:
    parser = ArgumentParser(prog="python -m tests.system.failover", description=__doc__)
    parser.add_argument("--seconds", type=float, default=Plan.seconds, help="of blows")
    parser.add_argument("--rate", type=float, default=Plan.rate, help="messages a second on each channel")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**32)
    parser.add_argument("--usual", action="store_true", help="the default periods of Sentinels")
    parser.add_argument("--server", choices=("valkey", "redis"), default="valkey", help="behind Sentinels")
    parser.add_argument("--frozen", type=float, nargs="+", default=(), help="seconds: the only blows; with --usual")
    parser.add_argument("--cluster", action="store_true", help="a cluster in place of Sentinels")
    parser.add_argument("--slots", action="store_true", help="slots of a cluster move, nothing dies")
    parser.add_argument("--everything", action="store_true", help="with all that people do beside")
    parser.add_argument("--keep", type=Path)
    given = parser.parse_args()
    logging.getLogger("core").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory(prefix="ada-failover-") as own:
        outcome = asyncio.run(prove(given.keep or Path(own), given))
    for kind, found in itertools.groupby(sorted(outcome.findings, key=_kind), _kind):
        print(*itertools.islice(found, SHOWN), f"({kind})", sep="\n")
    print(outcome, flush=True)
    return 1 if outcome.findings else 0


def _kind(finding: str) -> str:
    """Return a finding without its numbers and its channel."""
    return re.sub(r"[\d.]+", "", finding.partition(" ")[2])


async def prove(directory: Path, given: Namespace) -> Outcome:
    """Start everything in a directory, and run one proof."""
    began = time.monotonic()

    def log(line: str) -> None:
        print(f"[{time.monotonic() - began:6.1f} s] {line}", flush=True)

    log(f"seed {given.seed}")
    directory.mkdir(parents=True, exist_ok=True)
    servers: ReplicaSet | Cluster = (
        Cluster(directory, replicas=6)
        if given.cluster or given.slots
        else ReplicaSet(directory, program_of(given.server), is_usual=given.usual)
    )
    sandbox = Sandbox(directory / "sandbox")
    try:
        await asyncio.to_thread(servers.start)
        await sandbox.start()
        if given.slots and isinstance(servers, Cluster):
            plan = Plan(given.seed, slots.SECONDS, given.rate, slots.CHANNELS)
            return await slots.move_slots(servers, sandbox, directory, plan, log)
        plan = Plan(given.seed, given.seconds, given.rate)
        if given.frozen:
            plan = replace(plan, blows=1 + len(given.frozen))
        proof = Everything if given.everything else Failover
        return await proof(under_blows(servers, given.frozen), sandbox, directory, plan, log).run()
    finally:
        await sandbox.stop()
        servers.close()


if __name__ == "__main__":
    sys.exit(main())
