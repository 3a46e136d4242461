"""The community's events over Bots Long Poll: numbered by `ts`, the newest kept, a request waits for the next.

Source: dev.vk.com, "Bots Long Poll API". `failed`: 1 events too old are gone, 2 the key is wrong, 3 both are lost.
"""

import asyncio
import secrets
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

MAX_WAIT = 90
KEPT = 1000


class LongPoll:
    """Events of one community. Numbers begin with 1."""

    def __init__(self, group: int) -> None:
        self._group = group
        self.key = secrets.token_hex(8)
        self.ts = 1
        self._events: deque[tuple[int, dict[str, Any]]] = deque(maxlen=KEPT)
        self._next = asyncio.Event()

    def push(self, kind: str, content: Mapping[str, Any]) -> dict[str, Any]:
        """Add an event and answer the requests that wait. Return the event."""
        event = {"type": kind, "group_id": self._group, "event_id": secrets.token_hex(20), "object": dict(content)}
        self._events.append((self.ts, event))
        self.ts += 1
        waiting, self._next = self._next, asyncio.Event()
        waiting.set()
        return event

    def forget_key(self) -> None:
        """Refuse the key given out so far, as VK does from time to time."""
        self.key = secrets.token_hex(8)

    async def answer(self, query: Mapping[str, str]) -> dict[str, Any]:
        """Return the body of a_check: the events since `ts`, or none after `wait` seconds."""
        if query.get("key") != self.key:
            return {"failed": 2}
        if not query.get("ts", "").isdecimal() or not self._oldest <= int(query["ts"]) <= self.ts:
            return {"failed": 1, "ts": str(self.ts)}
        since, wait = int(query["ts"]), query.get("wait", "25")
        if since == self.ts and wait.isdecimal():
            with suppress(TimeoutError):
                async with asyncio.timeout(min(int(wait), MAX_WAIT)):
                    await self._next.wait()
        return {"ts": str(self.ts), "updates": [event for number, event in self._events if number >= since]}

    @property
    def _oldest(self) -> int:
        return self._events[0][0] if self._events else 1
