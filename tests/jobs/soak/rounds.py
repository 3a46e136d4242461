"""The second kind of job of the soak: each iteration uses a state, signals, sleeps, branches, a child and a limit.

Each thing that it does outside has a name of its own in the ledger, which remembers the idempotency keys of its calls.
"""

import os
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from aiohttp import ClientSession

from jobs import Iteration, Job, Limit, Schedule

PERIOD = float(os.environ.get("ROUND_PERIOD", "8"))
DAY = timedelta(days=1)
MOMENT = timedelta(seconds=0.3)


@dataclass
class Tally:
    rounds: int = 0


class Round(Job):
    name = "round"
    schedule = Schedule(timedelta(seconds=PERIOD))
    state = Tally
    most_failures = 1000
    limits = (Limit("rounds", concurrency=10),)

    async def run(self, iteration: Iteration) -> None:
        number = iteration.number
        await do(iteration, f"before {number}")
        patience = MOMENT
        while (ticket := await next_ticket(iteration, patience)) is not None:
            await do(iteration, f"ticket {ticket}")
            patience = timedelta(0)
        child = await iteration.start_child("leg", str(number % 3), {"number": number})
        await iteration.gather(do(iteration, f"branch {number}"), later(iteration, number))
        await child.result()
        iteration.state.rounds += 1
        await do(iteration, f"after {number} {iteration.state.rounds}")


class Leg(Job):
    """The child of a round."""

    name = "leg"
    schedule = Schedule()
    most_failures = 1000

    async def run(self, iteration: Iteration) -> None:
        await iteration.sleep(MOMENT)
        await do(iteration, f"leg {iteration.parameters['number']}")


async def next_ticket(iteration: Iteration, patience: timedelta) -> Any:
    """Return the next signal; None if none comes."""
    try:
        return await iteration.wait("ticket", timeout=patience)
    except TimeoutError:
        return None


async def later(iteration: Iteration, number: int) -> None:
    await iteration.sleep(MOMENT)
    await do(iteration, f"later {number}")


async def do(iteration: Iteration, name: str) -> None:
    await iteration.effect(name, call, iteration.user, name, idempotent_for=DAY)


async def call(user: str, name: str, *, idempotency_key: str) -> None:
    words = {"who": user, "name": name, "key": idempotency_key}
    async with ClientSession(raise_for_status=True) as session:
        await (await session.post(f"{os.environ['LEDGER_URL']}/call", params=words)).read()
