"""bench idle: what an idle fleet costs: `./ada up` with the sandbox and every courier, and nothing to do."""

import asyncio
import json
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping

from bench.harness.environment import START_TIMEOUT, ChildProcess, Environment, environment
from bench.harness.measurements import ProcessUsage, commands_within, process_tree, process_usage
from bench.harness.report import Rows, log_progress, report_target
from cli.processes.supervisor import Announcement

CPU_TARGET, COMMANDS_TARGET = 1.0, 1.0
_SETTLE = 5.0
"""Seconds after the start in which the processes open connections and go to sleep."""


def declare(parser: ArgumentParser) -> None:
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to measure (60)")
    parser.add_argument("--shards", type=int, default=1, help="ADA_SHARDS (1)")


async def measure(arguments: Namespace, rows: Rows) -> None:
    async with environment(shards=arguments.shards) as env:
        fleet = await start_fleet(env)
        await asyncio.sleep(min(_SETTLE, arguments.seconds))
        before, began = process_usage(), time.monotonic()
        commands = await commands_within(env.redis, arguments.seconds)
        seconds, after = time.monotonic() - began, process_usage()
        shares = cpu_percentages(before, after, process_tree(fleet.pid, after), seconds)
    show(rows, shares, commands / seconds)


async def start_fleet(env: Environment) -> ChildProcess:
    log_progress("starting ./ada up")
    fleet = await env.start("up", "cli", "up", "--json", parse_line=parse_ready)
    facts = await fleet.facts(2 * START_TIMEOUT)
    log_progress(f"up, with the couriers {facts['ready']['couriers']}")
    return fleet


def parse_ready(line: str) -> Announcement | None:
    """Return the facts of the line that `./ada up --json` prints when all processes are ready; else None."""
    try:
        facts: Announcement = json.loads(line)
    except ValueError:
        return None
    return facts if "ready" in facts else None


def cpu_percentages(
    before: Mapping[int, ProcessUsage], after: Mapping[int, ProcessUsage], members: set[int], seconds: float
) -> Mapping[str, float]:
    """Return percent of one core by process name; processes of one name are added."""
    shares: dict[str, float] = {}
    for pid in sorted(members):
        name = process_name(after[pid].command)
        share = 100 * (after[pid].seconds - (before[pid].seconds if pid in before else 0.0)) / seconds
        shares[name] = shares.get(name, 0.0) + share
    return shares


def process_name(command: str) -> str:
    """Return the CLI command, or what else the process is; the rest are shells that end a child with its parent."""
    if verbs := command.partition(" -m cli.shared_process ")[2]:
        return f"all {verbs.split()[0]}s"
    others = (name for name in ("valkey-server", "forkserver", "resource_tracker") if name in command)
    return command.partition(" -m cli ")[2].partition(" --")[0] or next(others, "parent watchers")


def show(rows: Rows, shares: Mapping[str, float], commands_per_s: float) -> None:
    for name, share in shares.items():
        rows.show({"process": name, "cpu_percent": round(share, 3)})
    clients = sum(name.split()[0] in ("serve", "courier", "bot", "scenarios", "jobs") for name in shares)
    total, each = sum(shares.values()), commands_per_s / max(1, clients)
    rows.show({"process": "all", "cpu_percent": round(total, 3), "commands_per_s_each": round(each, 3)})
    report_target("CPU of all processes, % of a core", total, f"< {CPU_TARGET:g}", total < CPU_TARGET)
    report_target("commands per second and process", each, f"< {COMMANDS_TARGET:g}", each < COMMANDS_TARGET)
