"""bench scenarios: bots written in YAML, beside a bare aiogram bot that does the same without a store.

latency  from an update to the request at the sandbox's Bot API: one send, and the fifth send of a chain
rate     updates per second, when many wait
steps    scripts and server commands of one step, with few and with many stored runs
waiting  what runs cost that wait for a delivery
"""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Awaitable, Callable, Mapping

from bench.harness.report import Rows
from bench.scenarios import latency, rate, steps, waiting
from bench.scenarios.sizes import FULL, SHORT, Sizes

PARTS: Mapping[str, Callable[[Sizes, Rows], Awaitable[None]]] = {
    "latency": latency.measure,
    "rate": rate.measure,
    "steps": steps.measure,
    "waiting": waiting.measure,
}


def declare(parser: ArgumentParser) -> None:
    parser.add_argument("parts", nargs="*", type=part, metavar="PART", help=f"{', '.join(PARTS)} (all of these)")
    parser.add_argument("--short", action="store_true", help="small sizes: everything in a minute")


def part(word: str) -> str:
    if word not in PARTS:
        raise ArgumentTypeError(f"{word!r} is not one of {', '.join(PARTS)}")
    return word


async def measure(arguments: Namespace, rows: Rows) -> None:
    sizes = SHORT if arguments.short else FULL
    for name in arguments.parts or PARTS:
        await PARTS[name](sizes, rows)
