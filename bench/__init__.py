"""The measurements behind docs/performance.md: `./ada bench NAME`.

Every benchmark starts its own Valkey and its own processes in a temporary directory and stops them at the end.

    delivery    how late, how many, how expensive: deliveries, from the HTTP API to the provider
    queue       cost, rates, latency and memory of the queue alone
    people      import, expansion of groups, quotas
    scenarios   latency, rate and cost of bots written in YAML
    jobs        lateness, takeover after a kill, bytes and idle CPU of long-running jobs
    harness     what every benchmark needs: a server, child processes, cost counters, result rows

`peer_program` runs other queues in a virtual environment of their own, so it stands in no package that imports Ada.

A benchmark is a module with `declare(parser)` and `async measure(arguments, rows)`.
"""

from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from bench.harness.report import Rows

MODULES: Mapping[str, str] = {
    "lag": "bench.delivery.lag",
    "enqueue": "bench.delivery.enqueue",
    "deliver": "bench.delivery.deliver",
    "durability": "bench.delivery.durability",
    "idle": "bench.delivery.idle",
    "memory": "bench.delivery.memory",
    "footprint": "bench.delivery.footprint",
    "console": "bench.delivery.console",
    "queue": "bench.queue",
    "cluster": "bench.queue.cluster",
    "people": "bench.people",
    "scenarios": "bench.scenarios",
    "jobs": "bench.jobs",
}
"""The module of each benchmark, by the name that `./ada bench` takes."""


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
