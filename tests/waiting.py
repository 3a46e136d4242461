"""The one place of the asynchronous tests that polls."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


async def until(predicate: Callable[[], T | Awaitable[T]], within: float = 5.0, every: float = 0.005) -> T:
    """Awaits the moment the predicate (plain or asynchronous) becomes true and answers its value.

    Raises AssertionError with the predicate's last value after `within` seconds.
    """
    limit = time.monotonic() + within
    while True:
        value = predicate()
        found: T = await value if inspect.isawaitable(value) else value
        if found:
            return found
        if time.monotonic() > limit:
            raise AssertionError(f"not within {within} s: {inspect.getsource(predicate).strip()} was {found!r}")
        await asyncio.sleep(every)
