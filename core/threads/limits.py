"""How much people may write to each other: the limits of a person, and of a thread against robots.

A robot that answers everything is stopped by the limit of its thread, whatever it says of itself. A repeat of an event
counts once.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from core.errors import QuotaExceeded
from core.model.clock import in_ms
from core.model.history_key import Id
from core.redis.store import Store
from core.threads.files import fetchable

MOST, PERIOD = 5, timedelta(minutes=5)
"""Limit of the messages of one person to all inboxes (R-27)."""
MOST_FILES, FILES_PERIOD = 10, timedelta(days=1)
"""The files that one person may send to them."""
MOST_IN_THREAD, THREAD_PERIOD = 10, timedelta(minutes=1)
"""The messages of both sides that are passed on in a thread."""


class ReplyLimits:
    """One per process. `event`: the name of what was written, in hexadecimal digits. Methods raise StoreError."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def wait_of_person(self, tenant: str, person: Id, event: str) -> timedelta | None:
        """Count a message of a person to an inbox; return how long it has to wait, None if the message may be passed
        on.
        """
        return await self._wait(tenant, f"replies.{person}", event, MOST, PERIOD)

    async def check_thread(self, tenant: str, thread: str, event: str) -> None:
        """Count a message of a thread. Raises QuotaExceeded if it may not be passed on."""
        if wait := await self._wait(tenant, f"thread.{thread}", event, MOST_IN_THREAD, THREAD_PERIOD):
            raise QuotaExceeded(MOST_IN_THREAD, THREAD_PERIOD, wait)

    async def files_left(
        self, tenant: str, person: Id, event: str, written: Mapping[str, Any]
    ) -> tuple[int, timedelta | None]:
        """Return how many files of a message its person may send now, and when the next one if these are not all.
        `written`: the event as it came.
        """
        for n in range(len(fetchable(written))):
            if wait := await self._wait(tenant, f"files.{person}", f"{event}{n}", MOST_FILES, FILES_PERIOD):
                return n, wait
        return MOST_FILES, None

    async def _wait(self, tenant: str, quota: str, event: str, most: int, period: timedelta) -> timedelta | None:
        """Return how long to wait if a quota is used up."""
        number = int(event, 16) % 10**18 + 10**18
        suffix, shard = f"{quota}:{number}", self._store.shard_of(f"{tenant}:{quota.partition('.')[2]}")
        reply = await self._store.run("take_quota", shard, tenant, suffix, most, in_ms(period))
        return timedelta(milliseconds=int(reply[1])) if reply[0] == "quota" else None
