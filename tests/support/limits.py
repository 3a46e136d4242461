"""Time limits of tests. A test that awaits for too long fails, and the failure shows where it awaits.

pytest-timeout alone would show the event loop only, and would let the fixtures be closed by a loop that it has
interrupted. So an asynchronous test gets two thirds of that limit; the rest is for its fixtures.
"""

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import pytest

T = TypeVar("T")

REPLY = 60.0
"""Seconds that a test's own client waits for a reply: a busy machine may take longer than the 5 of redis-py."""

LONG_FORM = 7200.0
"""Seconds that a test may take in its long form (`./ada prove`)."""
STEP = 120.0
"""Seconds that one step of a state machine may take."""
MACHINE = 1200.0
"""Seconds for a test of a state machine. An example that waits too long takes STEP in a rule and again in its teardown,
and Hypothesis repeats it; a limit below that would hide where it waits."""
SHARE = 2 / 3


async def bounded(doing: Awaitable[T], seconds: float = STEP) -> T:
    """Awaits it. Raises AssertionError after `seconds`, with the tasks that still wait; the cause shows the place."""
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            return await doing
    except TimeoutError as error:
        if not limit.expired():
            raise
        raise AssertionError(
            f"not over within {seconds:g} s (the first traceback shows where). {_waiting()}"
        ) from error


def close(runner: asyncio.Runner, seconds: float = STEP) -> None:
    """Cancels what still runs and closes the loop. Raises AssertionError with the tasks that do not end after that: a
    Runner by itself would wait for them for ever.
    """
    runner.run(_cancel_others(seconds))
    runner.close()


async def _cancel_others(seconds: float) -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    if others and (await asyncio.wait(others, timeout=seconds))[1]:
        raise AssertionError(f"cancelled, and not over within {seconds:g} s. {_waiting()}")


def _waiting() -> str:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    places = sorted(
        f"{task.get_name()} at {frame.f_code.co_qualname}:{frame.f_lineno}"
        for task in others
        for frame in task.get_stack(limit=1)
    )
    return f"Other tasks wait: {', '.join(places)}" if places else "No other task waits."


def apply(item: pytest.Item, is_long: bool) -> None:
    """Limit one test. In the long form every test may take LONG_FORM."""
    if is_long:
        item.add_marker(pytest.mark.timeout(LONG_FORM), append=False)
    if isinstance(item, pytest.Function) and inspect.iscoroutinefunction(item.obj):
        item.obj = _limited(item.obj, SHARE * seconds_of(item))


def seconds_of(item: pytest.Item) -> float:
    """Return the limit that pytest-timeout applies."""
    mark = item.get_closest_marker("timeout")
    if mark is not None:
        return float(mark.args[0])
    return float(item.config.getoption("timeout") or item.config.getini("timeout"))


def _limited(
    test: Callable[..., Coroutine[Any, Any, None]], seconds: float
) -> Callable[..., Coroutine[Any, Any, None]]:
    @functools.wraps(test)
    async def run(*arguments: Any, **fixtures: Any) -> None:
        await bounded(test(*arguments, **fixtures), seconds)

    return run
