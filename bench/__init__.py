"""The measurements behind docs/performance.md: `./ada bench NAME`.

Every benchmark starts its own Valkey and its own processes in a temporary directory and stops them at the end.

    delivery    how late, how many, how expensive: deliveries, from the HTTP API to the provider
    queue       cost, rates, latency and memory of the queue alone
    people      import, expansion of groups, quotas
    scenarios   latency, rate and cost of bots written in YAML
    jobs        lateness, takeover after a kill, bytes and idle CPU of long-running jobs
    harness     what every benchmark needs: a server, child processes, cost counters, result rows

`peer_program` runs other queues in a virtual environment of their own, so it stands in no package that imports Ada.

Benchmark NAME is `declare_NAME(parser)` and `async measure_NAME(arguments, rows)` of its module.
"""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from importlib import import_module
from typing import Any, TypeVar

from bench.harness.report import Rows

BENCHMARKS: Mapping[str, tuple[str, str]] = {
    "lag": ("bench.delivery.lag", "how late first attempts are, with up to a million others pending"),
    "enqueue": ("bench.delivery.enqueue", "POSTs per second of one API process, beside a bare handler"),
    "deliver": ("bench.delivery.deliver", "messages per second and commands per message, by channel"),
    "durability": ("bench.delivery.enqueue", "POSTs per second with durability replica, beside local"),
    "idle": ("bench.delivery.footprint", "what a fleet without work costs"),
    "footprint": (
        "bench.delivery.footprint",
        "memory and start of ./ada up and of commands, beside an earlier commit",
    ),
    "memory": ("bench.delivery.footprint", "bytes of a scheduled delivery"),
    "console": ("bench.delivery.console", "what open consoles cost beside a million pending tasks"),
    "queue": ("bench.queue", "complexity, rates, latency and memory of the queue"),
    "cluster": ("bench.queue.cluster", "CPU of each primary for a task, with one primary and with three"),
    "people": ("bench.people", "import of people, expansion of groups, cost of quotas"),
    "scenarios": ("bench.scenarios", "latency, rate and cost of bots written in YAML, beside a bare aiogram bot"),
    "jobs": ("bench.jobs", "lateness of long-running jobs, takeover after a kill, bytes and CPU of idle ones"),
}
"""By the name that `./ada bench` takes: its module, and its help."""


def functions_of(
    name: str,
) -> tuple[Callable[[ArgumentParser], None], Callable[[Namespace, Rows], Coroutine[Any, Any, None]]]:
    """Return `declare` and `measure` of a benchmark, whose modules are imported by this."""
    module = import_module(BENCHMARKS[name][0])
    return getattr(module, f"declare_{name}"), getattr(module, f"measure_{name}")


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
