"""bench idle: what a whole fleet costs while there is nothing to do: `./ada up` with the sandbox and every courier."""

import asyncio
import json
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping

from bench.harness.child import Child
from bench.harness.cost import Usage, asked_within, tree, usage
from bench.harness.ground import START, Ground, ground
from bench.harness.rows import Rows, say, verdict
from cli.processes.supervisor import Facts

CPU_WANTED, COMMANDS_WANTED = 1.0, 1.0
_SETTLE = 5.0
"""Seconds after the start in which everybody opens his connections and goes to sleep."""


def declare(parser: ArgumentParser) -> None:
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to look (60)")


async def measure(arguments: Namespace, rows: Rows) -> None:
    async with ground() as place:
        fleet = await started(place)
        await asyncio.sleep(min(_SETTLE, arguments.seconds))
        before, began = usage(), time.monotonic()
        asked = await asked_within(place.redis, arguments.seconds)
        took, after = time.monotonic() - began, usage()
        shares = shares_of(before, after, tree(fleet.pid, after), took)
    show(rows, shares, asked / took)


async def started(place: Ground) -> Child:
    say("starting ./ada up")
    fleet = await place.start("up", "cli", "up", "--json", hear=hear_ready)
    facts = await fleet.facts(2 * START)
    say(f"up, with the couriers {facts['ready']['couriers']}")
    return fleet


def hear_ready(line: str) -> Facts | None:
    """`./ada up --json` says that all is ready, after the lines of its parts."""
    try:
        told: Facts = json.loads(line)
    except ValueError:
        return None
    return told if "ready" in told else None


def shares_of(
    before: Mapping[int, Usage], after: Mapping[int, Usage], members: set[int], seconds: float
) -> Mapping[str, float]:
    """Percent of a core by process, by its verb; the shells that end our children with us are one line."""
    shares: dict[str, float] = {}
    for pid in sorted(members):
        name = verb_of(after[pid].command)
        share = 100 * (after[pid].seconds - (before[pid].seconds if pid in before else 0.0)) / seconds
        shares[name] = shares.get(name, 0.0) + share
    return shares


def verb_of(command: str) -> str:
    return command.partition(" -m cli ")[2] or "tethers"


def show(rows: Rows, shares: Mapping[str, float], asked_per_s: float) -> None:
    for name, share in shares.items():
        rows.show({"process": name, "cpu_percent": round(share, 3)})
    askers = sum(name == "serve" or name.startswith("courier") for name in shares)
    total, each = sum(shares.values()), asked_per_s / max(1, askers)
    rows.show({"process": "all", "cpu_percent": round(total, 3), "commands_per_s_each": round(each, 3)})
    verdict("CPU of all processes, % of a core", total, f"< {CPU_WANTED:g}", total < CPU_WANTED)
    verdict("commands per second and process", each, f"< {COMMANDS_WANTED:g}", each < COMMANDS_WANTED)
