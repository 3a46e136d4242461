"""A lease counts from the call that claims: what a late reply brings may belong to another worker by now."""

import time
from datetime import timedelta
from typing import Any

import pytest

from core.queue import Attempt, NewTask
from core.redis.store import Argument, Store
from tests.support.stack import Stack
from tests.support.waiting import until
from tests.support.workshop import Workshop


class LateReplies(Store):
    """The reply of one function arrives `seconds` late."""

    late = ""
    seconds = 0.0

    async def run(self, name: str, shard: int, *arguments: Argument) -> Any:
        reply = await super().run(name, shard, *arguments)
        received = time.monotonic()
        await until(lambda: name != self.late or time.monotonic() > received + self.seconds)
        return reply


@pytest.mark.parametrize(("late", "trusted"), [("claim", [False, True]), ("turn", [True, False])])
async def test_a_lease_is_counted_from_the_call_that_claims_not_from_its_reply(
    stack: Stack, late: str, trusted: list[bool]
) -> None:
    store = await LateReplies.open(stack.server.url)
    workshop = Workshop(store)
    lease = timedelta(seconds=6)
    found: list[bool] = []

    async def handler(attempt: Attempt) -> None:
        found.append(attempt.holds_lease())
        store.late = "turn" if late == "turn" and len(found) == 1 else ""

    await stack.queue.put_many("t", [NewTask("a"), NewTask("b")])
    store.late, store.seconds = late, 7.0
    await workshop.start_worker(handler, concurrency=1, lease=lease)
    await until(lambda: len(found) >= 2)
    assert found[:2] == trusted
    await workshop.close()
    await store.close()
