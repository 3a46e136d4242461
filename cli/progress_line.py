"""Shows in one line of the terminal how far a command has come."""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from core.redis.cancel_and_wait import cancel_and_wait

Line = Callable[[], Awaitable[str]]
"""Returns what is shown now; "" changes nothing."""


@asynccontextmanager
async def progress_line(line: Line, every: float, *, is_shown: bool = True) -> AsyncIterator[None]:
    """Show the line on stderr again and again until the block is left, if stderr is a terminal."""
    if not (is_shown and sys.stderr.isatty()):
        yield
        return
    showing = asyncio.create_task(_show_often(line, every))
    try:
        yield
    finally:
        await cancel_and_wait(showing)
        _show("")


async def _show_often(line: Line, every: float) -> None:
    while True:
        await asyncio.sleep(every)
        if shown := await line():
            _show(shown)


def _show(text: str) -> None:
    print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
