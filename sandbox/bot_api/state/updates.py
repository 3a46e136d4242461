"""The updates that wait for the bot, and getUpdates.

An update waits until it is confirmed: by a higher `offset` of getUpdates, or by the answer of the webhook.
"""

import asyncio
import time
from collections.abc import Sequence
from typing import Any

from sandbox.bot_api.state.errors import CONFLICTING_POLL, ApiError

MAX_LIMIT = 100
MAX_TIMEOUT = 50  # seconds
# These kinds are sent only if allowed_updates names them.
_SPECIAL = frozenset({"chat_member", "message_reaction", "message_reaction_count"})
_START_OF_2026 = 1_767_225_600

Update = dict[str, Any]


class Updates:
    """The queue of one bot. Ids continue over a restart of the sandbox, because they grow with the time."""

    def __init__(self) -> None:
        self._pending: dict[int, Update] = {}
        self._last_id = int((time.time() - _START_OF_2026) * 10)
        self._poll: asyncio.Future[None] | None = None
        self._arrived = asyncio.Event()
        self.allowed: Sequence[str] = ()  # empty: all but the special ones

    def __len__(self) -> int:
        return len(self._pending)

    def add(self, kind: str, content: Any) -> None:
        """Queue an update, unless its kind is not allowed."""
        if not (kind in self.allowed if self.allowed else kind not in _SPECIAL):
            return
        self._last_id += 1
        self._pending[self._last_id] = {"update_id": self._last_id, kind: content}
        self._arrived.set()
        if self._poll is not None and not self._poll.done():
            self._poll.set_result(None)

    def confirm(self, before: int) -> None:
        """Drop the updates with a lower id."""
        for update_id in [one for one in self._pending if one < before]:
            del self._pending[update_id]

    def clear(self) -> None:
        self._pending.clear()

    async def first(self) -> Update:
        """Wait for the oldest update and return it; it stays in the queue."""
        while not self._pending:
            self._arrived.clear()
            await self._arrived.wait()
        return next(iter(self._pending.values()))

    async def poll(self, offset: int, limit: int, timeout: int) -> list[Update]:
        """Return up to `limit` updates; if there are none, wait up to `timeout` seconds for the first.

        A poll that is still waiting ends with an ApiError: only one program may poll.
        """
        self.end_poll(CONFLICTING_POLL)
        if offset < 0:
            offset = self._last_id + 1 + offset
        self.confirm(offset)
        if not self._pending and timeout > 0:
            await self._wait(min(timeout, MAX_TIMEOUT))
        return list(self._pending.values())[: min(max(limit, 1), MAX_LIMIT)]

    async def _wait(self, seconds: float) -> None:
        self._poll = asyncio.get_running_loop().create_future()
        try:
            await asyncio.wait_for(self._poll, seconds)
        except TimeoutError:
            pass

    def end_poll(self, reason: str) -> None:
        """End the poll that waits, if there is one, with error 409."""
        if self._poll is not None and not self._poll.done():
            self._poll.set_exception(ApiError(409, reason))
