"""The updates of the bot: by long polling with a marker, or posted to the address of a subscription.

A marker commits everything before it. Without one only the last update comes, as the page GET/updates has it.
"""

import asyncio
import re
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from aiohttp import ClientError, ClientSession, ClientTimeout
from yarl import URL

from sandbox.max.errors import malformed, too_many_requests
from sandbox.rate_limit import RateLimit

SECRET_HEADER = "X-Max-Bot-Api-Secret"
MAX_LIMIT, MAX_TIMEOUT = 100, 30
POLLS_PER_SECOND = 2
_KEPT = 10_000
_ATTEMPTS, _GROWTH = 10, 2.5
_SECRET = re.compile(r"[A-Za-z0-9_-]{5,256}")

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Subscription:
    """An address to which updates are posted. `types`: the wanted types; all if there is none."""

    url: str
    types: Sequence[str] = ()
    secret: str = ""

    @classmethod
    def read(cls, body: Any) -> "Subscription":
        """Read the body of POST /subscriptions. Raises ApiError.

        MAX requires HTTPS and port 443; any address is accepted here, because the sandbox calls only this machine.
        """
        url, secret = (body.get("url"), body.get("secret") or "") if isinstance(body, dict) else ("", "")
        if not isinstance(url, str) or URL(url).scheme not in ("http", "https"):
            raise malformed("url: an HTTPS address")
        if secret and not _SECRET.fullmatch(secret):
            raise malformed("secret: 5 to 256 of A-Z, a-z, 0-9, _ and -")
        return cls(url, tuple(body.get("update_types") or ()), secret)

    def shown(self) -> Json:
        return {"url": self.url, "time": int(time.time() * 1000), "update_types": list(self.types) or None}


class Updates:
    """Of one bot. `first_pause`: seconds before a post is repeated, which grow; the real one is a minute."""

    def __init__(
        self,
        first_pause: float = 1.0,
        count: Callable[[str], None] = lambda _: None,
        polls_per_second: int = POLLS_PER_SECOND,
    ) -> None:
        self._events: deque[tuple[int, Json]] = deque(maxlen=_KEPT)
        self._last = time.time_ns()  # beyond every marker of an earlier start
        self._next = asyncio.Event()
        self._rate = RateLimit()
        self._polls_per_second = polls_per_second
        self._first_pause = first_pause
        self._count = count
        self._posting: asyncio.Task[None] | None = None
        self.subscription: Subscription | None = None

    def add(self, kind: str, content: Json) -> None:
        self._last += 1
        self._events.append((self._last, {"update_type": kind, "timestamp": time.time_ns() // 1_000_000, **content}))
        waiting, self._next = self._next, asyncio.Event()
        waiting.set()

    def lose_all(self) -> None:
        """Forget the updates, and count anew, as a server without its data does."""
        self._events.clear()
        self._last = 0

    async def poll(self, marker: int | None, limit: int, timeout: int, types: Collection[str]) -> Json:
        """Return the answer of GET /updates. Raises ApiError beyond the rate, and while subscribed."""
        if not self._rate.accepts(self._polls_per_second, time.monotonic()):
            self._count("polls refused")
            raise too_many_requests()
        if self.subscription is not None:
            raise malformed("the bot has a webhook")
        since = marker if marker is not None else self._last
        if since > self._last and timeout > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(min(timeout, MAX_TIMEOUT)):
                    await self._next.wait()
        waiting = [(number, one) for number, one in self._events if number >= since]
        page = waiting[: min(max(limit, 1), MAX_LIMIT)]
        found = [one for _, one in page if not types or one["update_type"] in types]
        return {"updates": found, "marker": page[-1][0] + 1 if page else max(since, self._last + 1)}

    # the subscription

    async def subscribe(self, subscription: Subscription | None) -> None:
        """Post all further updates to an address; to none with None."""
        if self._posting is not None:
            self._posting.cancel()
            await asyncio.gather(self._posting, return_exceptions=True)
            self._posting = None
        self.subscription = subscription
        if subscription is not None:
            self._posting = asyncio.create_task(self._post_all(subscription, self._last + 1))

    async def _post_all(self, subscription: Subscription, number: int) -> None:
        async with ClientSession(timeout=ClientTimeout(total=30)) as session:
            while True:
                event = next((one for at, one in self._events if at == number), None)
                if event is None:
                    await self._next.wait()
                    continue
                if not subscription.types or event["update_type"] in subscription.types:
                    await self._post(session, subscription, event)
                number += 1

    async def _post(self, session: ClientSession, subscription: Subscription, event: Json) -> None:
        """Post an update until it is taken, some times; then it is lost."""
        headers = {SECRET_HEADER: subscription.secret} if subscription.secret else {}
        for attempt in range(_ATTEMPTS):
            try:
                async with session.post(subscription.url, json=event, headers=headers) as answer:
                    if answer.status == 200:
                        self._count("callbacks")
                        return
            except (ClientError, TimeoutError, OSError):
                pass
            self._count("callbacks refused")
            await asyncio.sleep(min(self._first_pause * _GROWTH**attempt, 30))
