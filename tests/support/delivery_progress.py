"""Outcomes of simulated providers, and how far a delivery has progressed."""

import asyncio
from collections.abc import Callable
from datetime import timedelta

from core.model.history import History
from core.model.history_key import HistoryKey, Id
from core.model.states import Reason, Status
from couriers.sending.interface import Message, Outcome, Rejected
from tests.support.stack import Stack, sent

SECOND = timedelta(seconds=1)
GONE = Rejected(Reason.RECIPIENT_UNREACHABLE)


def by_address(**outcomes: Outcome) -> Callable[[Message], Outcome]:
    """Return a response with these outcomes by address, Sent for all other addresses."""
    return lambda message: outcomes.get(message.address) or sent(message)


class Gate:
    """A provider that responds after `opened` is set."""

    def __init__(self, then: Callable[[Message], Outcome] = sent) -> None:
        self.opened = asyncio.Event()
        self._then = then

    async def __call__(self, message: Message) -> Outcome:
        await self.opened.wait()
        return self._then(message)


async def slowly(message: Message) -> Outcome:
    """Respond after 2 ms, so that other tasks run meanwhile."""
    await asyncio.sleep(0.002)
    return sent(message)


def statuses(history: History, channel: str = "echo") -> dict[Id, Status]:
    return {record.id: record.outcomes[channel].status for record in history.recipients}


async def has_reported(stack: Stack, key: HistoryKey, count: int) -> bool:
    return (await stack.history(key)).reported >= count


async def pending(stack: Stack, key: HistoryKey) -> bool:
    return bool(await stack.redis.exists(f"delivery:{{{key.shard}}}:{key.suffix}"))
