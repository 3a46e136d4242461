"""bench queue: cost, speed and memory of the queue. Costs are compared as ratios within one run.

claim    cost of a claim with locked lanes, deferred tasks and a long lane
due      many tasks fall due at once: the longest script, and how long another client waits
cancel   cancels many tasks of one user while other tasks are put and done
memory   bytes of a pending task; what is left after a drain
rates    tasks put and done per second, compared with a trivial script on the same server
latency  from put to the handler, at 100 tasks per second
audit    seconds of an audit of many tasks
peers    arq and SAQ with the same work; only when asked for, by this name or by --beside
bullmq   BullMQ with the same work, in alternate rounds, on a plain Valkey over TCP; only by --beside
"""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Awaitable, Callable, Mapping

from bench.harness.report import Rows
from bench.queue import peers
from bench.queue.bullmq import comparison
from bench.queue.bullmq.systems import BULLMQ
from bench.queue.queue_environment import FULL, SHORT, QueueSizes
from bench.queue.server_cost import measure_cancel, measure_claim, measure_due, measure_memory
from bench.queue.speed import measure_audit, measure_latency, measure_rates

PARTS: Mapping[str, Callable[[QueueSizes, Rows], Awaitable[None]]] = {
    "claim": measure_claim,
    "due": measure_due,
    "cancel": measure_cancel,
    "memory": measure_memory,
    "rates": measure_rates,
    "latency": measure_latency,
    "audit": measure_audit,
}
PEERS = "peers"


def declare_queue(parser: ArgumentParser) -> None:
    parser.add_argument(
        "parts", nargs="*", type=part, metavar="PART", help=f"{', '.join(PARTS)} (all of these), {PEERS}"
    )
    parser.add_argument("--short", action="store_true", help="small sizes: everything in a minute or two")
    parser.add_argument("--rounds", type=int, metavar="N", help=f"rounds beside {BULLMQ} (5)")
    parser.add_argument(
        "--beside",
        type=names,
        default=(),
        metavar="NAME,…",
        help=f"also run {', '.join(peers.PEERS)} (from PyPI) or {BULLMQ} (by npm), in a temporary directory",
    )


def part(word: str) -> str:
    if word not in (*PARTS, PEERS):
        raise ArgumentTypeError(f"{word!r} is not one of {', '.join((*PARTS, PEERS))}")
    return word


def names(word: str) -> tuple[str, ...]:
    """Parse the systems to compare with: their names with commas. Raises ArgumentTypeError."""
    found, known = tuple(word.split(",")), (*peers.PEERS, BULLMQ)
    if unknown := [name for name in found if name not in known]:
        raise ArgumentTypeError(f"{unknown[0]!r} is not one of {', '.join(known)}")
    return found


async def measure_queue(arguments: Namespace, rows: Rows) -> None:
    sizes = SHORT if arguments.short else FULL
    chosen = arguments.parts or ([] if arguments.beside else list(PARTS))
    for name, measure_part in PARTS.items():
        if name in chosen:
            await measure_part(sizes, rows)
    beside = [name for name in arguments.beside if name in peers.PEERS]
    if PEERS in chosen or beside:
        await peers.measure(beside or tuple(peers.PEERS), sizes, rows)
    if BULLMQ in arguments.beside:
        await comparison.measure(arguments.short, arguments.rounds, rows)
