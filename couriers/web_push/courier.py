"""Notifications of browsers by Web Push: encrypted for the browser (RFC 8291), sent to its push service (RFC 8030).

The library pywebpush encrypts and signs; aiohttp sends. A push service that has accepted a message says `sent`, and
no more: the page's own service worker reports `delivered` when the browser shows the notification.
The table of answers is in `outcomes.py`.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import aiohttp
import msgspec

from couriers.provider_calls import AnnouncingConnector, announcing, noted_call
from couriers.sending import (
    NEVER,
    Content,
    Feature,
    Message,
    Outcome,
    Reason,
    Rejected,
    Sent,
    SetupError,
    Subscription,
    guarded_socket,
    is_endpoint,
    malformed,
    origin_of,
    plain_socket,
)
from couriers.web_push.channel import CHANNEL as RECORD
from couriers.web_push.content import KEYBOARD, LIMITS, notification
from couriers.web_push.outcomes import outcome_of, outcome_of_error

if TYPE_CHECKING:
    from py_vapid import Vapid02

_FAILURES = (aiohttp.ClientError, OSError)
"""The errors of a call without an answer. TimeoutError is an OSError."""
_VALID = timedelta(hours=12)
"""How long a signature is valid; services refuse more than a day."""
_MOST_WORDS = 1000
"""Bytes that are read of an answer."""
_LONGEST_TITLE = 64
INVALID_ADDRESS = Rejected(Reason.RECIPIENT_UNREACHABLE, "not the digest of a subscription")
GONE = Rejected(Reason.RECIPIENT_UNREACHABLE, "the subscription was removed", is_gone=True)
OTHER_SERVICE = Rejected(Reason.RECIPIENT_UNREACHABLE, "its push service is not ADA_WEB_PUSH_SERVICE")
MALFORMED = Rejected(Reason.RECIPIENT_UNREACHABLE, "what was subscribed is no browser", is_gone=True)


@dataclass(frozen=True)
class Settings:
    """The fields are ADA_WEB_PUSH_CONTACT and so on. `callback_url`: the service worker reports there."""

    contact: str  # at which push services reach the operator: mailto:… or https://…
    key: str = field(default="", repr=False)  # private, in base64url; without it one is made and kept in ADA_DATA
    title: str = "Ada"  # of each notification
    ttl: timedelta = timedelta(days=1)  # how long a push service keeps a message for a browser that is away
    timeout: timedelta = timedelta(seconds=20)  # of a request; after it the outcome is unknown
    service: str = ""  # the only push service that is used; it may be on this machine: the sandbox
    callback_url: str | None = field(default=None, metadata={"setting": "ADA_PUBLIC_URL"})

    def __post_init__(self) -> None:
        if not 0 < len(self.title) <= _LONGEST_TITLE:
            raise SetupError(f"ADA_WEB_PUSH_TITLE has 1 to {_LONGEST_TITLE} characters")
        if self.service and not origin_of(self.service).startswith(("http://", "https://")):
            raise SetupError("ADA_WEB_PUSH_SERVICE must begin with https://")


class WebPush:
    """Implements `couriers.sending.Courier`. Safe for concurrent attempts."""

    channel = "web-push"
    batch = 1
    parcel = 100
    remembers = NEVER
    announces: Literal[True] = True
    links_preferences: Literal[True] = True
    shows = RECORD.shows
    limits = LIMITS

    def __init__(self, settings: Settings, key: "Vapid02", subscribe_key: str) -> None:
        self._settings, self._key = settings, key
        self.subscribe_key, self.push_service = subscribe_key, settings.service
        self.account = f"{settings.contact} {subscribe_key[-8:]}"
        self._answer_url = f"{(settings.callback_url or '').rstrip('/')}/a/"
        self._session: aiohttp.ClientSession | None = None

    def check_contact(self) -> None:
        """Raise VapidException if the contact cannot be signed."""
        self._signature("https://push.example")

    def as_text(self, content: Content) -> frozenset[Feature]:
        """Return the buttons if they are no links, or too many."""
        return KEYBOARD.as_text(content) & self.shows

    async def attempt(self, messages: Sequence[Message]) -> Sequence[Outcome]:
        return [await self._attempt(message) for message in messages]

    async def _attempt(self, message: Message) -> Outcome:
        subscription = message.subscription
        if malformed("web-push", message.address):
            return INVALID_ADDRESS
        if subscription is None:
            return GONE
        if not is_endpoint(subscription.endpoint, self.push_service):
            return OTHER_SERVICE
        made = notification(message, self._settings.title, self._answer_url, msgspec.json.encode)
        try:
            body = self._encrypted(subscription, msgspec.json.encode(made.fields))
        except ValueError:  # of the keys
            return MALFORMED
        try:
            with announcing(message.announce):
                outcome = await self._post(subscription, body)
        except _FAILURES as error:
            return outcome_of_error(error)
        return Sent(not_shown=made.not_shown) if isinstance(outcome, Sent) else outcome

    def _encrypted(self, subscription: Subscription, plain: bytes) -> bytes:
        """Return the body of the request. Raises ValueError for keys that are none."""
        from pywebpush import WebPusher, WebPushException

        keys = {"p256dh": subscription.p256dh, "auth": subscription.auth}
        try:
            body: bytes = WebPusher({"endpoint": subscription.endpoint, "keys": keys}).encode(plain)["body"]
        except WebPushException as fault:
            raise ValueError("the keys of a subscription") from fault
        return body

    async def _post(self, subscription: Subscription, body: bytes) -> Outcome:
        """Hand a message to its push service. Raises one of `_FAILURES`."""
        seconds = self._settings.timeout.total_seconds()
        headers = {
            "Content-Encoding": "aes128gcm",
            "TTL": str(int(self._settings.ttl.total_seconds())),
            **self._signature(subscription.origin),
        }
        with noted_call(f"push to {subscription.origin}") as call:
            async with self._open().post(
                subscription.endpoint,
                data=body,
                headers=headers,
                timeout=aiohttp.ClientTimeout(total=seconds, connect=seconds / 2),
                allow_redirects=False,  # it could lead to an address that is not public
            ) as response:
                outcome = outcome_of(response.status, _seconds(response.headers.get("Retry-After", "")))
                words = b"" if isinstance(outcome, Sent) else await response.content.read(_MOST_WORDS)
                call.answered(response.status, words.decode(errors="replace").replace(subscription.endpoint, "…"))
                return outcome

    def _signature(self, origin: str) -> dict[str, str]:
        claims = {"aud": origin, "sub": self._settings.contact, "exp": _expiry()}
        signed: dict[str, str] = self._key.sign(claims)
        return signed

    def _open(self) -> aiohttp.ClientSession:
        """Return the session, made at the first call: it belongs to the running event loop."""
        if self._session is None:
            make_socket = plain_socket if self.push_service else guarded_socket
            self._session = aiohttp.ClientSession(
                connector=AnnouncingConnector(limit=0, socket_factory=make_socket),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={"User-Agent": "Ada/1"},
            )
        return self._session

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()


def _expiry() -> int:
    return int(time.time() + _VALID.total_seconds())


def _seconds(asked: str) -> int | None:
    """Return the wait of Retry-After, None for a date or nonsense: then there is none."""
    return int(asked) if asked.isascii() and asked.isdecimal() and len(asked) < 6 else None


async def open(settings: Settings, directory: Path) -> WebPush:  # noqa: A001 - the interface's name
    """Return the courier; nothing is sent. `directory` keeps the key pair. Raises SetupError."""
    try:
        from couriers.web_push.keys import load_key, public_key
    except ImportError:
        raise SetupError("the library pywebpush is missing: pip install 'ada[web-push]'") from None
    from py_vapid import VapidException

    if not settings.callback_url:
        raise SetupError("ADA_PUBLIC_URL must be set: people switch notifications on at a page of it")
    key = load_key(settings.key, directory)
    courier = WebPush(settings, key, public_key(key))
    try:
        courier.check_contact()
    except VapidException:
        raise SetupError("ADA_WEB_PUSH_CONTACT must be mailto:name@domain or an address of https") from None
    return courier
