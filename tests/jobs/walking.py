"""The jobs that the processes of the tests of kills run: one for each point at which a process may die."""

import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from aiohttp import ClientError, ClientSession

from jobs import Iteration, Job, RetryPolicy, Schedule

URL = os.environ.get("LEDGER_URL", "")
DAY = timedelta(days=1)
ITEMS = 4
ATTEMPTS = 3

PAUSE = timedelta(seconds=3)
"""Of the sleep, and before each attempt of the retries."""


@dataclass
class Count:
    items: int = 0


class Walk(Job):
    """Does something outside, goes to the point that its parameter names, and does something else."""

    name = "walk"
    schedule = Schedule()
    state = Count

    async def run(self, iteration: Iteration) -> Any:
        await do(iteration, "before")
        result = await POINTS[iteration.parameters["point"]](iteration)
        await do(iteration, "after")
        return result


class Errand(Job):
    """A child of a walk."""

    name = "errand"
    schedule = Schedule()

    async def run(self, iteration: Iteration) -> Any:
        return await do(iteration, iteration.parameters["does"])


async def _sleep(iteration: Iteration) -> None:
    await iteration.sleep(PAUSE)


async def _wait(iteration: Iteration) -> Any:
    return await iteration.wait("go")


async def _branches(iteration: Iteration) -> Any:
    async def sleeper() -> str:
        await iteration.sleep(timedelta(seconds=1))
        return str(await do(iteration, "branch that has slept"))

    return await iteration.gather(do(iteration, "branch"), do(iteration, "held branch"), sleeper())


async def _child_start(iteration: Iteration) -> Any:
    first = await iteration.start_child("errand", "first", {"point": "first", "does": "errand"})
    await iteration.step("held step", call, "child start", "held step")
    second = await iteration.start_child("errand", "second", {"point": "second", "does": "errand"})
    return [await first.result(), await second.result()]


async def _child_wait(iteration: Iteration) -> Any:
    child = await iteration.start_child("errand", "held", {"point": "held", "does": "held errand"})
    return await child.result()


async def _retry(iteration: Iteration) -> Any:
    patient = RetryPolicy(ATTEMPTS, first=PAUSE, longest=PAUSE, on=(ClientError,))
    return await iteration.step("failing", call, "retry", "failing", retry=patient)


async def _state(iteration: Iteration) -> int:
    async def handle(number: int) -> None:
        await do(iteration, f"held item {number}" if number == ITEMS // 2 else f"item {number}")
        iteration.state.items += 1

    await iteration.each(range(ITEMS), handle, key=str)
    return int(iteration.state.items)


async def _reset(iteration: Iteration) -> Any:
    first = await iteration.step("first", call, "reset", "first")
    await do(iteration, "effect between")
    await iteration.step("held second", call, "reset", "held second")
    return first


POINTS: Mapping[str, Callable[[Iteration], Awaitable[Any]]] = {
    "sleep": _sleep,
    "wait": _wait,
    "branches": _branches,
    "child start": _child_start,
    "child wait": _child_wait,
    "retry": _retry,
    "state": _state,
    "reset": _reset,
}


async def do(iteration: Iteration, name: str) -> Any:
    """Do something outside, once."""
    return await iteration.effect(name, call, iteration.parameters["point"], name, idempotent_for=DAY)


async def call(who: str, name: str, *, idempotency_key: str = "") -> Any:
    async with ClientSession(raise_for_status=True) as session:
        answer = await session.post(f"{URL}/call", params={"who": who, "name": name, "key": idempotency_key})
        return await answer.json()
