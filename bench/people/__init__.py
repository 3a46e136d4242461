"""bench people: the directory, the rules of sending, the Telegram bot.

import     a CSV file with many people: the whole time, the longest script, how long another client waits
expansion  one delivery to a supergroup, compared with the same delivery with inline people
quota      what the check of a quota adds to an enqueue
bot        from an update to the answer of the Telegram bot, at the sandbox
"""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Awaitable, Callable, Mapping

from bench.harness.report import Rows
from bench.people import bot, expansion, imports, quota
from bench.people.sizes import FULL, SHORT, Sizes

PARTS: Mapping[str, Callable[[Sizes, Rows], Awaitable[None]]] = {
    "import": imports.measure,
    "expansion": expansion.measure,
    "quota": quota.measure,
    "bot": bot.measure,
}


def declare(parser: ArgumentParser) -> None:
    parser.add_argument("parts", nargs="*", type=part, metavar="PART", help=f"{', '.join(PARTS)} (all of these)")
    parser.add_argument("--short", action="store_true", help="small sizes: everything in half a minute")


def part(word: str) -> str:
    if word not in PARTS:
        raise ArgumentTypeError(f"{word!r} is not one of {', '.join(PARTS)}")
    return word


async def measure(arguments: Namespace, rows: Rows) -> None:
    sizes = SHORT if arguments.short else FULL
    for name in arguments.parts or PARTS:
        await PARTS[name](sizes, rows)
