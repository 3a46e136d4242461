"""Messages to rooms of staff by the library apprise: Teams, Mattermost, Zulip, Slack, Discord, Matrix, ntfy and others.

The address of a contact is the name of a room. Its URL has the token of the room, so it stands only in the setting
ADA_APPRISE_ROOMS, and in no contact, list, history, export, backup or log.

The library is synchronous, so each call has a thread of a pool of its own. The outcome follows from the statuses of
HTTP that `watched_call.py` has seen, not from the library's false.
"""

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from couriers.apprise.channel import CHANNEL as RECORD
from couriers.provider_calls import noted_call
from couriers.sending import (
    NEVER,
    Deferred,
    Message,
    Outcome,
    Reason,
    Rejected,
    Scope,
    Sent,
    SetupError,
    Unknown,
    malformed,
)

if TYPE_CHECKING:
    from couriers.apprise.watched_call import WatchedCall

_THREADS = 16
_PAUSE = timedelta(minutes=1)  # after 429: the library does not show Retry-After
_REFUSED_CONTENT = frozenset({400, 411, 413, 415, 422})
_REQUEST_TIMEOUT, _TOO_MANY = 408, 429


@dataclass(frozen=True)
class Settings:
    """The fields are ADA_APPRISE_ROOMS and so on."""

    rooms: str = field(repr=False, metadata={"lines": True})  # name=URL of each room, in lines or behind each other
    timeout: timedelta = timedelta(seconds=60)  # of one message; after it the outcome is unknown
    allow_private: bool = field(default=False, metadata={"setting": "ADA_WEBHOOK_ALLOW_PRIVATE"})  # addresses of rooms

    def urls(self) -> dict[str, str]:
        """Return the URL of each room. Raises SetupError, which never has a URL."""
        found: dict[str, str] = {}
        lines = [line for line in self.rooms.splitlines() if not line.lstrip().startswith("#")]
        for number, entry in enumerate(" ".join(lines).split(), 1):
            name, _, url = entry.partition("=")
            if malformed("apprise", name) or "://" not in url:
                raise SetupError(f"ADA_APPRISE_ROOMS: entry {number} is not name=URL, such as staff=ntfys://ntfy.sh/…")
            if name.lower() in found:
                raise SetupError(f"ADA_APPRISE_ROOMS: the room {name} is there twice")
            found[name.lower()] = url
        return found


class AppriseCourier:
    """Implements `couriers.sending.Courier`. Safe for concurrent attempts. `services`: what each room belongs to."""

    channel = "apprise"
    batch = 1
    parcel = 100
    remembers = NEVER
    shows = RECORD.shows

    def __init__(self, settings: Settings, urls: Mapping[str, str], services: Mapping[str, str]) -> None:
        self._settings, self._urls, self._services = settings, urls, services
        self._threads = ThreadPoolExecutor(_THREADS, "apprise")
        self.account = f"rooms: {len(urls)}"

    async def attempt(self, messages: Sequence[Message]) -> Sequence[Outcome]:
        return [await self._attempt(message) for message in messages]

    async def _attempt(self, message: Message) -> Outcome:
        from couriers.apprise.watched_call import WatchedCall, send

        room = message.address.lower()
        if room not in self._urls:
            return Rejected(Reason.RECIPIENT_UNREACHABLE, "ADA_APPRISE_ROOMS has no room of this name")
        exchange, service = WatchedCall(allow_private=self._settings.allow_private), self._services[room]
        with noted_call(service) as call:
            sending = asyncio.get_running_loop().run_in_executor(
                self._threads, send, self._urls[room], message.text, exchange
            )
            try:
                await asyncio.wait([sending], timeout=self._settings.timeout.total_seconds())
            finally:
                exchange.abandon()
            call.answered(exchange.statuses[-1] if exchange.statuses else 0)
        return outcome_of(service, exchange, sending.result() if sending.done() else None)

    async def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


def outcome_of(service: str, exchange: "WatchedCall", is_accepted: bool | None) -> Outcome:
    """Return the outcome of a call. `is_accepted`: what the library returned, None for an abandoned call."""
    statuses = exchange.statuses
    said = f"{service} answers {', '.join(map(str, statuses))}" if statuses else f"{service} does not answer"
    if not exchange.may_have_sent:
        return _unsent(service, exchange, is_accepted)
    if exchange.is_unanswered or is_accepted is None:
        return Unknown(f"{said}, and then not any more" if statuses else said)
    if is_accepted and 200 <= statuses[-1] < 300:
        return Sent()
    if is_accepted or not all(400 <= status < 500 and status != _REQUEST_TIMEOUT for status in statuses):
        return Unknown(said)
    if _TOO_MANY in statuses:
        return Deferred(Reason.THROTTLED, _PAUSE, Scope.CHAT, said, is_guess=True)
    is_content = statuses[-1] in _REFUSED_CONTENT
    return Rejected(Reason.CONTENT_REFUSED if is_content else Reason.RECIPIENT_UNREACHABLE, said)


def _unsent(service: str, exchange: "WatchedCall", is_accepted: bool | None) -> Outcome:
    """Return the outcome of a call that has sent nothing over HTTP."""
    if exchange.is_forbidden:
        why = (
            "its address is not public: ADA_WEBHOOK_ALLOW_PRIVATE" if exchange.uses_http else "it is not called by HTTP"
        )
        return Rejected(Reason.RECIPIENT_UNREACHABLE, f"{service}: {why}")
    if is_accepted is None or (exchange.uses_http and not is_accepted):
        return Deferred(Reason.PROVIDER_DOWN, detail=f"{service}: there is no connection")
    return Unknown(f"{service} was not called by HTTP, so its answer is not known")


async def open(settings: Settings, directory: Path) -> AppriseCourier:  # noqa: A001 - the interface's name
    """Return the courier; `directory` is not used, and nothing is sent. Raises SetupError for a room that has no URL of
    a service.
    """
    try:
        from couriers.apprise import watched_call
    except ImportError:
        raise SetupError("the library apprise is missing: pip install 'ada[apprise]'") from None
    urls = settings.urls()
    watched_call.watch()
    services = await asyncio.to_thread(watched_call.service_names, urls)
    return AppriseCourier(settings, urls, services)
