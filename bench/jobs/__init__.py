"""bench jobs: many long-running jobs on two processes.

idle  bytes of a job that waits for its next iteration, and the CPU of all of them
load  how late iterations begin; then one process is killed (kill -9): when all its jobs run again
bot   how long a bot takes to answer without jobs, under their load, and after processes were killed
"""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

from bench.harness.report import Rows
from bench.jobs import bot, idle, load
from bench.jobs.sizes import FULL, SHORT, Sizes

PARTS: Mapping[str, Callable[[Sizes, Rows], Awaitable[None]]] = {
    "idle": idle.measure,
    "load": load.measure,
    "bot": bot.measure,
}


def declare(parser: ArgumentParser) -> None:
    parser.add_argument("parts", nargs="*", type=part, metavar="PART", help=f"{', '.join(PARTS)} (all of these)")
    parser.add_argument("--short", action="store_true", help="small sizes: everything in a minute")
    parser.add_argument("--jobs", type=int, metavar="N", help=f"how many jobs ({FULL.jobs})")


def part(word: str) -> str:
    if word not in PARTS:
        raise ArgumentTypeError(f"{word!r} is not one of {', '.join(PARTS)}")
    return word


async def measure(arguments: Namespace, rows: Rows) -> None:
    sizes = SHORT if arguments.short else FULL
    sizes = replace(sizes, jobs=arguments.jobs or sizes.jobs)
    for name in arguments.parts or PARTS:
        await PARTS[name](sizes, rows)
