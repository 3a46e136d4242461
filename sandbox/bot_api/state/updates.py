"""The updates that wait for the bot: getUpdates, setWebhook and the posting to the bot's own URL.

An update waits until it is confirmed: by a higher `offset` of getUpdates, or by the answer of the webhook.
"""

import asyncio
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from aiohttp import ClientError, ClientSession, ClientTimeout
from yarl import URL

from sandbox.bot_api.state.errors import CONFLICTING_POLL, ApiError, bad_request
from sandbox.bot_api.state.parameters import Parameters

MAX_LIMIT = 100
MAX_TIMEOUT = 50  # seconds
# These kinds are sent only if allowed_updates names them.
_SPECIAL = frozenset({"chat_member", "message_reaction", "message_reaction_count"})
_START_OF_2026 = 1_767_225_600

Update = dict[str, Any]

SECRET_HEADER = "X-Telegram-Bot-Api-Secret-Token"
MAX_PAUSE = 30.0  # seconds between two attempts
_SECRET = re.compile(r"[A-Za-z0-9_-]{1,256}")


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


@dataclass(slots=True)
class Webhook:
    """The bot's URL, and the last failure to post to it."""

    url: str
    secret: str = ""
    max_connections: int = 40
    last_error_at: int = 0
    last_error: str = ""

    @classmethod
    def read(cls, parameters: Parameters) -> "Webhook | None":
        """Read the parameters of setWebhook; None for an empty URL. Raises ApiError.

        Telegram requires HTTPS; plain HTTP is accepted here, because the sandbox calls only this machine.
        """
        url, secret = parameters.text("url"), parameters.text("secret_token")
        if not url:
            return None
        if secret and not _SECRET.fullmatch(secret):
            raise bad_request("secret token contains unallowed characters")
        if not _is_http(url):
            raise bad_request("bad webhook: An HTTPS URL must be provided for webhook")
        return cls(url, secret, parameters.integer("max_connections", 40))

    def fail(self, error: str) -> None:
        self.last_error, self.last_error_at = error, int(time.time())


def _is_http(url: str) -> bool:
    try:
        parsed = URL(url)
    except ValueError:
        return False
    return parsed.scheme in ("http", "https") and bool(parsed.host)


def webhook_info(webhook: Webhook | None, updates: Updates) -> dict[str, Any]:
    """Return the object WebhookInfo."""
    info: dict[str, Any] = {
        "url": webhook.url if webhook else "",
        "has_custom_certificate": False,
        "pending_update_count": len(updates),
    }
    if webhook is None:
        return info
    info["max_connections"] = webhook.max_connections
    if updates.allowed:
        info["allowed_updates"] = list(updates.allowed)
    if webhook.last_error:
        info |= {"last_error_date": webhook.last_error_at, "last_error_message": webhook.last_error}
    return info


class WebhookSender:
    """Posts the updates one after another. Each one is repeated until the answer has a status 2xx."""

    def __init__(self, updates: Updates, first_pause: float = 1.0) -> None:
        self._updates = updates
        self._first_pause = first_pause
        self._task: asyncio.Task[None] | None = None

    def start(self, webhook: Webhook) -> None:
        self.stop()
        self._task = asyncio.create_task(self._run(webhook))

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _run(self, webhook: Webhook) -> None:
        async with ClientSession(timeout=ClientTimeout(total=60)) as session:
            while True:
                update = await self._updates.first()
                pause = self._first_pause
                while not await _post(session, webhook, update):
                    await asyncio.sleep(pause)
                    pause = min(2 * pause, MAX_PAUSE)
                self._updates.confirm(update["update_id"] + 1)


async def _post(session: ClientSession, webhook: Webhook, update: dict[str, Any]) -> bool:
    headers = {SECRET_HEADER: webhook.secret} if webhook.secret else {}
    try:
        async with session.post(webhook.url, json=update, headers=headers, allow_redirects=False) as response:
            if 200 <= response.status < 300:
                return True
            webhook.fail(f"Wrong response from the webhook: {response.status} {response.reason}")
    except TimeoutError:
        webhook.fail("Read timeout expired")
    except (ClientError, OSError) as error:
        webhook.fail(f"Connection failed: {type(error).__name__}")
    return False
