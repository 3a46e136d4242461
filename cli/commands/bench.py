"""The verb bench: measures what docs/performance.md claims. Each benchmark brings its own server and processes."""

import asyncio
from argparse import SUPPRESS, ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Mapping
from importlib import import_module

from cli.command import GOOD, Command, add_json

BENCHMARKS: Mapping[str, str] = {
    "lag": "how late first attempts are, with up to a million others pending",
    "enqueue": "POSTs per second of one API process, beside a bare handler",
    "deliver": "messages per second and commands per message, by channel",
    "idle": "what a fleet without work costs",
    "memory": "bytes of a scheduled delivery",
    "queue": "cost laws, rates, latency and memory of the queue",
}


def declare(parser: ArgumentParser) -> None:
    """All of them declare their options: each is one small module, and `bench --help` shows every one."""
    names = parser.add_subparsers(dest="benchmark", required=True, metavar="NAME", title="benchmarks")
    for name, duty in BENCHMARKS.items():
        module = import_module(f"bench.{name}")
        one = names.add_parser(
            name, help=duty, description=module.__doc__, formatter_class=RawDescriptionHelpFormatter, allow_abbrev=False
        )
        add_json(one, default=SUPPRESS)
        module.declare(one)


def run(arguments: Namespace) -> int:
    from bench.harness.rows import Rows

    asyncio.run(import_module(f"bench.{arguments.benchmark}").measure(arguments, Rows(arguments.json)))
    return GOOD


COMMANDS: Mapping[str, Command] = {"bench": Command(declare, run)}
