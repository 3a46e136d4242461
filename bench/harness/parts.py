"""A benchmark of several parts: its arguments, and running those that were chosen."""

from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from bench.harness.report import Rows

S = TypeVar("S")
Parts = Mapping[str, Callable[[S, Rows], Awaitable[None]]]


def declare_parts(parser: ArgumentParser, parts: Parts[S], short: str) -> None:
    """Add the arguments of a benchmark. `short`: what `--short` means here."""

    def part(word: str) -> str:
        if word not in parts:
            raise ArgumentTypeError(f"{word!r} is not one of {', '.join(parts)}")
        return word

    parser.add_argument("parts", nargs="*", type=part, metavar="PART", help=f"{', '.join(parts)} (all of these)")
    parser.add_argument("--short", action="store_true", help=f"small sizes: {short}")


async def measure_parts(parts: Parts[S], chosen: Sequence[str], sizes: S, rows: Rows) -> None:
    """Run the chosen parts in their order; all of them if none is chosen."""
    for name in chosen or parts:
        await parts[name](sizes, rows)
