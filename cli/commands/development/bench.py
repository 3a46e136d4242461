"""The verb bench: measures the figures of docs/performance.md. Each benchmark starts its own server and processes."""

import asyncio
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Mapping
from importlib import import_module

from bench import MODULES
from cli.command import SUCCESS, Command

BENCHMARKS: Mapping[str, str] = {
    "lag": "how late first attempts are, with up to a million others pending",
    "enqueue": "POSTs per second of one API process, beside a bare handler",
    "deliver": "messages per second and commands per message, by channel",
    "durability": "POSTs per second with durability replica, beside local",
    "idle": "what a fleet without work costs",
    "footprint": "memory and start of ./ada up, and of commands, beside an earlier commit",
    "memory": "bytes of a scheduled delivery",
    "console": "what open consoles cost beside a million pending tasks",
    "queue": "complexity, rates, latency and memory of the queue",
    "cluster": "CPU of each primary for a task, with one primary and with three",
    "people": "import of people, expansion of groups, cost of quotas",
    "scenarios": "latency, rate and cost of bots written in YAML, beside a bare aiogram bot",
    "jobs": "lateness of long-running jobs, takeover after a kill, bytes and CPU of idle ones",
}


def declare(parser: ArgumentParser) -> None:
    """Import every benchmark, so that `bench --help` shows the options of each."""
    names = parser.add_subparsers(dest="benchmark", required=True, metavar="NAME", title="benchmarks")
    for name, text in BENCHMARKS.items():
        module = import_module(MODULES[name])
        subparser = names.add_parser(
            name, help=text, description=module.__doc__, formatter_class=RawDescriptionHelpFormatter, allow_abbrev=False
        )
        module.declare(subparser)


def run(arguments: Namespace) -> int:
    from bench.harness.report import Rows

    asyncio.run(import_module(MODULES[arguments.benchmark]).measure(arguments, Rows(arguments.json)))
    return SUCCESS


COMMANDS: Mapping[str, Command] = {"bench": Command(declare, run)}
