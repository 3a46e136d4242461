"""The verb bench: measures the figures of docs/performance.md. Each benchmark starts its own server and processes."""

import asyncio
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Mapping
from importlib import import_module

from bench import BENCHMARKS
from bench.harness.report import Rows
from cli.command import SUCCESS, Command


def declare(parser: ArgumentParser) -> None:
    """Import every benchmark, so that `bench --help` shows the options of each."""
    names = parser.add_subparsers(dest="benchmark", required=True, metavar="NAME", title="benchmarks")
    for name, (path, text) in BENCHMARKS.items():
        module = import_module(path)
        subparser = names.add_parser(
            name, help=text, description=module.__doc__, formatter_class=RawDescriptionHelpFormatter, allow_abbrev=False
        )
        module.declare(subparser)


def run(arguments: Namespace) -> int:
    asyncio.run(import_module(BENCHMARKS[arguments.benchmark][0]).measure(arguments, Rows(arguments.json)))
    return SUCCESS


COMMANDS: Mapping[str, Command] = {"bench": Command(declare, run)}
