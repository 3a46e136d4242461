"""Receives what people write to a bot in MAX: by long poll, or by the webhook of ADA_MAX_WEBHOOK_URL.

MAX that has lost its updates, or counts them anew, has nothing beyond our marker, refuses it, or answers with a lower
one. The marker that it gives without ours shows that. Then all updates are read that it has kept: a repeat is
recognised by its name. Source: dev.max.ru, GET/updates, GET, POST, DELETE/subscriptions.

Shows that the bot is writing, changes buttons, and fetches files. A press is answered in MAX only with a new content of
its message: what a person has to know is a message of its own.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from msgspec import Struct

from core.threads.files import MOST_BYTES, FilesUnavailable, ReceivedFile
from core.updates.bot_calls import BotCall, ButtonChange, PressAnswer, TypingMark
from core.updates.events import Event
from couriers.max.client import MaxClient, MaxRefused, MaxTokenRefused, MaxUnavailable, Settings
from couriers.max.content import files_of, keyboard
from couriers.max.events import TYPES, urls_of
from couriers.receiving.poller import Page, is_lower
from couriers.receiving.receiver import Receiver, WebhookReceiver, download_linked
from couriers.sending import Content
from couriers.sending.files import MessageFiles

log = logging.getLogger(__name__)


class MaxCalls:
    """Makes the calls as one bot."""

    def __init__(self, client: MaxClient) -> None:
        self._client = client

    async def make(self, call: BotCall) -> bool:
        """Make a call. Returns False if MAX was not reached. What MAX refuses is only logged. Raises TokenRefused."""
        try:
            match call:
                case TypingMark():
                    await self._client.call("POST", f"chats/{call.chat_id}/actions", body={"action": "typing_on"})
                case PressAnswer(alert=True):
                    await self._client.call("POST", "messages", {"user_id": str(call.user_id)}, {"text": call.text})
                case ButtonChange():
                    await self._change(call)
        except MaxRefused as refusal:
            log.debug("%s: MAX refused it: %s", call, refusal)
        except MaxUnavailable as fault:
            log.debug("%s is repeated: %s", call, fault)
            return False
        return True

    async def _change(self, call: ButtonChange) -> None:
        """Change the buttons of a message, as the answer to the press if that still waits. The text and the files stay.
        Raises MaxRefused, MaxUnavailable, TokenRefused.
        """
        mid = str(call.message_id)
        found = await self._client.call("GET", "messages", {"message_ids": mid})
        files = [file for message in found.get("messages") or () for file in files_of(message)]
        buttons = keyboard(Content(inline=call.rows))
        body: dict[str, Any] = {"attachments": [*files, buttons] if buttons else files}
        if call.press:
            try:
                await self._client.call("POST", "answers", {"callback_id": call.press}, {"message": body})
                return
            except MaxRefused as refusal:
                log.debug("%s: the press does not wait any more: %s", call, refusal)
        await self._client.call("PUT", "messages", {"message_id": mid}, body)


class MaxFiles:
    """Fetches the files of messages to one bot."""

    def __init__(self, client: MaxClient, files: MessageFiles) -> None:
        self._client = client
        self._files = files

    async def fetch(self, event: Event, most: int) -> AsyncIterator[ReceivedFile]:
        """Emit the first files of a message. Raises FilesUnavailable."""
        try:
            found = await self._client.call("GET", "messages", {"message_ids": str(event["message_id"])})
        except MaxRefused:
            return
        except MaxUnavailable as fault:
            raise FilesUnavailable(str(fault)) from None
        urls = [url for message in found.get("messages") or () for url in urls_of(message)]
        async for one in download_linked(self._files, event, most, urls):
            yield one

    async def close(self) -> None:
        await self._files.close()
        await self._client.close()


WAIT = 25
"""Seconds that MAX holds a poll without updates; 30 at most."""

SPACING = 0.55
"""Seconds between two requests: MAX takes two a second."""

LOOKS_EVERY = timedelta(minutes=5)
"""MAX drops a subscription after eight hours without a success."""


def open_receiver(settings: Settings, *, polls: bool) -> Receiver:
    """Return the bot; without a webhook, or with `polls`, it is polled. Raises SetupError for a webhook whose URL or
    secret cannot be used.
    """
    url = None if polls else settings.webhook_url
    webhook = MaxWebhook(url, settings.webhook_secret or "") if url else None
    client = MaxClient(settings.token, settings.api_url, settings.timeout, settings.ca)
    files = MaxFiles(client, MessageFiles(MOST_BYTES, allow_private=settings.allow_private))
    return Receiver(
        client,
        MaxTokenRefused,
        files.close,
        source=None if webhook else MaxLongPoll(client),
        keep_subscription=partial(webhook.keep, client) if webhook else None,
        make=MaxCalls(client).make,
        fetch=files.fetch,
    )


class MaxUpdatePage(Struct, frozen=True):
    """The answer to one poll. `marker`: where the next one begins; it commits everything before it."""

    updates: Sequence[Mapping[str, Any]]
    marker: str


async def poll(client: MaxClient, marker: str, wait: int = WAIT) -> MaxUpdatePage:
    """Wait for the next updates, `wait` seconds at most. Without a marker only the newest update comes. Raises
    MaxUnavailable, MaxRefused, TokenRefused.
    """
    query = {"limit": "100", "timeout": str(wait), "types": ",".join(TYPES)} | ({"marker": marker} if marker else {})
    body = await client.call("GET", "updates", query, wait=wait)
    updates, found = body.get("updates"), body.get("marker")
    known = [one for one in updates if isinstance(one, dict)] if isinstance(updates, list) else []
    return MaxUpdatePage(known, str(found) if isinstance(found, int) else marker)


async def subscribed(client: MaxClient) -> list[str]:
    """Return the addresses to which MAX posts updates. Raises MaxUnavailable, MaxRefused, TokenRefused."""
    found = (await client.call("GET", "subscriptions")).get("subscriptions")
    return [str(one.get("url")) for one in found if isinstance(one, dict)] if isinstance(found, list) else []


async def subscribe(client: MaxClient, url: str, secret: str) -> None:
    """Have updates posted to an address. Raises MaxUnavailable, MaxRefused, TokenRefused."""
    body = {"url": url, "update_types": list(TYPES), "secret": secret}
    await client.call("POST", "subscriptions", body=body)


async def unsubscribe_all(client: MaxClient) -> None:
    """End all subscriptions, beside which MAX refuses polling. Raises MaxUnavailable, MaxRefused, TokenRefused."""
    for url in await subscribed(client):
        await client.call("DELETE", "subscriptions", {"url": url})


class MaxLongPoll:
    """A source of `couriers.receiving.poller.Poller`. `spacing`: seconds between two requests."""

    faults: tuple[type[Exception], ...] = (MaxUnavailable, MaxRefused)

    def __init__(self, client: MaxClient, wait: int = WAIT, spacing: float = SPACING) -> None:
        self._client = client
        self._wait = wait
        self._spacing = spacing
        self._polled_at = float("-inf")

    async def sign_in(self) -> str:
        """Return the name of the bot; end its subscriptions, beside which it cannot poll. Raises MaxUnavailable,
        MaxRefused, TokenRefused.
        """
        me = await self._client.call("GET", "me")
        await unsubscribe_all(self._client)
        return f"max.{me.get('user_id')}"

    async def poll(self, position: str) -> Page:
        """Wait for the next events. Raises MaxUnavailable, MaxRefused, TokenRefused."""
        page, refusal = None, None
        try:
            page = await self._poll(position, self._wait)
        except MaxRefused as fault:
            refusal = fault
        if position and (page is None or not is_lower(position, page.position)):
            page = await self._kept_since_a_loss(position) or page
        if page is None:
            assert refusal is not None
            raise refusal
        return page

    async def _kept_since_a_loss(self, position: str) -> Page | None:
        """Return the events that MAX has kept if its position is before ours; else None."""
        newest = await self._poll("", 0)
        if not is_lower(newest.position, position):
            return None
        try:
            kept = await self._poll("0", 0)
        except MaxRefused:  # it takes no marker but its own
            return newest
        return kept if kept.events else newest

    async def _poll(self, position: str, wait: int) -> Page:
        await asyncio.sleep(max(0.0, self._polled_at + self._spacing - time.monotonic()))
        self._polled_at = time.monotonic()
        page = await poll(self._client, position, wait)
        return Page(page.updates, page.marker)


class MaxWebhook(WebhookReceiver):
    """The subscription of a bot."""

    path = "/v1/updates/max"
    url_setting = "ADA_MAX_WEBHOOK_URL"
    secret_setting = "ADA_MAX_WEBHOOK_SECRET"
    shortest_secret = 5

    async def keep(self, client: MaxClient, every: timedelta = LOOKS_EVERY) -> None:
        """Subscribe, and again whenever MAX has dropped the subscription. Any number of processes may do so. Raises
        TokenRefused.
        """
        is_set = False  # at first it is always made: the secret may be a new one
        while True:
            try:
                if not is_set or self.address not in await subscribed(client):
                    await subscribe(client, self.address, self.secret)
                    log.info("MAX posts updates to %s", self.address)
                is_set = True
            except (MaxUnavailable, MaxRefused) as fault:
                log.warning("the subscription of MAX is looked at later: %s", fault)
            await asyncio.sleep(every.total_seconds())
