"""The job that the processes of the tests run: it searches a service and applies to each item once."""

import os
from datetime import timedelta
from typing import Any

from aiohttp import ClientError, ClientSession, TraceConfig

from jobs import Iteration, Job, NotDone, Schedule

URL = os.environ.get("HUNT_URL", "")


class Hunt(Job):
    """Applies to what the service offers to the user."""

    name = "hunt"
    schedule = Schedule(timedelta(seconds=1))
    most_failures = 1000

    async def run(self, iteration: Iteration) -> None:
        async with ClientSession(raise_for_status=True, trace_configs=[_guard(iteration)]) as session:
            user, number = iteration.user, iteration.number

            async def search() -> Any:
                return await _get(session, f"/search?user={user}&iteration={number}")

            async def send(item: str) -> None:
                try:
                    await (await session.post(f"{URL}/apply?user={user}&item={item}")).read()
                except ClientError as fault:
                    if getattr(fault, "status", 0) == 503:
                        raise NotDone("the service refuses") from fault
                    raise

            async def exists(item: str) -> bool:
                return bool(await _get(session, f"/applied?user={user}&item={item}"))

            async def apply(item: str) -> None:
                await iteration.effect(item, send, item, exists=lambda: exists(item))

            await iteration.each(await iteration.step("search", search), apply, key=str)


def _guard(iteration: Iteration) -> TraceConfig:
    """Checks the lease right before a call is sent."""

    async def check(*_: Any) -> None:
        iteration.check_lease()

    trace = TraceConfig()
    trace.on_connection_create_end.append(check)
    trace.on_connection_reuseconn.append(check)
    return trace


async def _get(session: ClientSession, path: str) -> Any:
    async with session.get(URL + path) as response:
        return await response.json()
