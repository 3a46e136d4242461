"""Polling in tests: until something holds, or as long as something must hold."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, overload

T = TypeVar("T")

FIRST_PAUSE, LONGEST_PAUSE, GROWTH = 0.005, 0.02, 1.25
"""Seconds between two looks: what comes soon is seen at once, and what takes long is not asked for all the time."""


@overload
async def until(predicate: Callable[[], Awaitable[T]], within: float = ..., every: float = ...) -> T: ...
@overload
async def until(predicate: Callable[[], T], within: float = ..., every: float = ...) -> T: ...


async def until(predicate: Callable[[], Any], within: float = 60.0, every: float = LONGEST_PAUSE) -> Any:
    """Waits until the predicate (plain or asynchronous) is true; returns its value. `every`: the longest pause.

    Raises AssertionError with the last value after `within` seconds. The limit is far above what a wait takes:
    a busy machine may be many times slower.
    """
    limit = time.monotonic() + within
    pause = FIRST_PAUSE
    while True:
        value = predicate()
        found = await value if inspect.isawaitable(value) else value
        if found:
            return found
        if time.monotonic() > limit:
            raise AssertionError(f"not within {within} s: {inspect.getsource(predicate).strip()} was {found!r}")
        await asyncio.sleep(min(pause, every))
        pause *= GROWTH


async def stays(predicate: Callable[[], Any], during: float = 0.3, every: float = 0.01) -> None:
    """Checks again and again that the predicate (plain or asynchronous) is true, for `during` seconds.

    Raises AssertionError as soon as it is not. This is how a test shows that nothing more happens. Such a test passes
    by mistake if the machine is too slow; it never fails by mistake.
    """
    limit = time.monotonic() + during
    while True:
        value = predicate()
        found = await value if inspect.isawaitable(value) else value
        assert found, f"no longer: {inspect.getsource(predicate).strip()} was {found!r}"
        if time.monotonic() > limit:
            return
        await asyncio.sleep(every)


def await_sync(condition: Callable[[], T], what: str, within: float = 60.0) -> T:
    """Wait as `until` does, without an event loop, for the start of processes."""
    limit = time.monotonic() + within
    pause = FIRST_PAUSE
    while not (found := condition()):
        if time.monotonic() > limit:
            raise TimeoutError(f"waited {within} s for {what}")
        time.sleep(min(pause, LONGEST_PAUSE))
        pause *= GROWTH
    return found
