"""The job with limits that the processes of the tests run: each iteration calls a shop, for the account of the job."""

import os
from datetime import timedelta
from typing import Any

from aiohttp import ClientSession

from jobs import Iteration, Job, Limit, Schedule

URL = os.environ.get("SHOP_URL", "")
KIND, USER, ACCOUNT = 4, 3, 2
"""How many iterations of each run at once."""

RATE, PER = 4, timedelta(seconds=2)


class Order(Job):
    """Orders once, which takes a time."""

    name = "order"
    schedule = Schedule()
    most_failures = 1000
    limits = (
        Limit(concurrency=KIND),
        Limit(key="user", concurrency=USER),
        Limit("shop", key="parameters.account", concurrency=ACCOUNT),
    )

    async def run(self, iteration: Iteration) -> None:
        await iteration.step("order", call, iteration.user, iteration.parameters["account"])


class Query(Job):
    """Asks the shop for three prices."""

    name = "query"
    schedule = Schedule()
    most_failures = 1000
    limits = (Limit("prices", key="parameters.account", rate=RATE, per=PER),)

    async def run(self, iteration: Iteration) -> None:
        for number in range(3):
            await iteration.step(
                f"price {number}", call, iteration.user, iteration.parameters["account"], limit="prices"
            )


async def call(user: str, account: Any) -> None:
    async with ClientSession(raise_for_status=True) as session:
        await session.post(f"{URL}/call?user={user}&account={account}")
