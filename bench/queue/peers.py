"""peers"""

from bench.queue.sizes import Sizes
from bench.rows import Rows

PEERS = ("arq", "saq")


def names(w: str) -> tuple[str, ...]:
    return tuple(w.split(","))


async def measure(names: tuple[str, ...], sizes: Sizes, rows: Rows) -> None: ...
