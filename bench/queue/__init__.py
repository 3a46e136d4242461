"""bench queue: the cost laws of the queue, each flat within noise or a ratio of one run, and its speed.

claim    what a claim costs beside locked lanes, deferred tasks and a long lane
due      many tasks falling due at once: the longest script, how long others wait
cancel   one user's tasks, many of them, while others flow
memory   bytes of a pending task; what is left after a drain
rates    tasks put and done per second, beside a trivial script on the same server
latency  from put to the handler, 100 a second
peers    arq and SAQ with the same job; only when asked for, by this name or by --beside
"""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Awaitable, Callable, Mapping

from bench.harness.rows import Rows
from bench.queue import cancels, claims, due, latency, memory, peers, rates
from bench.queue.sizes import FULL, SHORT, Sizes

PARTS: Mapping[str, Callable[[Sizes, Rows], Awaitable[None]]] = {
    "claim": claims.measure,
    "due": due.measure,
    "cancel": cancels.measure,
    "memory": memory.measure,
    "rates": rates.measure,
    "latency": latency.measure,
}
PEERS = "peers"


def declare(parser: ArgumentParser) -> None:
    parser.add_argument(
        "parts", nargs="*", type=part, metavar="PART", help=f"{', '.join(PARTS)} (all of these), {PEERS}"
    )
    parser.add_argument("--short", action="store_true", help="small sizes: all of it in a minute or two")
    parser.add_argument(
        "--beside",
        type=peers.names,
        default=(),
        metavar="NAME,…",
        help=f"also run {' and '.join(peers.PEERS)}, installed from PyPI into a directory of their own",
    )


def part(word: str) -> str:
    if word not in (*PARTS, PEERS):
        raise ArgumentTypeError(f"{word!r} is none of {', '.join((*PARTS, PEERS))}")
    return word


async def measure(arguments: Namespace, rows: Rows) -> None:
    sizes = SHORT if arguments.short else FULL
    chosen = arguments.parts or ([] if arguments.beside else list(PARTS))
    for name, one in PARTS.items():
        if name in chosen:
            await one(sizes, rows)
    if PEERS in chosen or arguments.beside:
        await peers.measure(arguments.beside or tuple(peers.PEERS), sizes, rows)
