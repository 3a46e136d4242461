"""Events of the community: over Bots Long Poll, and to the address of the callback API if one is connected.

The callback API posts each event, in order, and repeats it until the answer is `ok` (VK: for a few hours; the sandbox:
a few times). Source: dev.vk.com, "Callback API".
"""

import asyncio
import secrets
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from aiohttp import ClientError, ClientSession, ClientTimeout

from sandbox.state import SandboxState

MAX_WAIT = 90
KEPT = 1000

_ATTEMPTS = 5
_FIRST_PAUSE = 0.5
_MOST_WAITING = 10_000


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


class NotConfirmed(Exception):
    """The address did not answer with the text that confirms it."""


class Events:
    """Of one community."""

    def __init__(self, state: SandboxState, group: int, long_poll: LongPoll) -> None:
        self._state = state
        self.group = group
        self._long_poll = long_poll
        self._waiting: asyncio.Queue[dict[str, Any]] = asyncio.Queue(_MOST_WAITING)
        self._sending: asyncio.Task[None] | None = None
        self._url, self._secret = "", ""

    def push(self, kind: str, content: Mapping[str, Any]) -> None:
        """Add an event."""
        event = self._long_poll.push(kind, content)
        if self._sending is not None and not self._waiting.full():
            self._waiting.put_nowait(event)

    async def connect(self, url: str, secret: str, confirmation: str) -> None:
        """Post all further events to this address. Raises NotConfirmed if it does not confirm itself."""
        await self.disconnect()
        self._url, self._secret = url, secret
        answer = await self._post({"type": "confirmation", "group_id": self.group})
        if answer != confirmation:
            raise NotConfirmed("the address does not answer with the text of the confirmation")
        self._sending = asyncio.create_task(self._send_all())

    async def disconnect(self) -> None:
        """Stop sending. Events that were not posted yet are lost."""
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.gather(self._sending, return_exceptions=True)
            self._sending, self._waiting = None, asyncio.Queue(_MOST_WAITING)

    async def _send_all(self) -> None:
        while True:
            await self._send(await self._waiting.get())

    async def _send(self, event: Mapping[str, Any]) -> None:
        for attempt in range(_ATTEMPTS):
            if await self._post(event) == "ok":
                self._state.count("vk", "callbacks")
                return
            self._state.count("vk", "callbacks refused")
            await asyncio.sleep(_FIRST_PAUSE * 2**attempt)

    async def _post(self, event: Mapping[str, Any]) -> str | None:
        """Return the answer; None unless it came with status 200."""
        body = {**event, "secret": self._secret}
        try:
            async with (
                ClientSession(timeout=ClientTimeout(total=10)) as session,
                session.post(self._url, json=body) as answer,
            ):
                return (await answer.text()).strip() if answer.status == 200 else None
        except (ClientError, TimeoutError, ValueError):
            return None
