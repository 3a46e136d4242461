"""An account of a channel, as the process of its bot uses it: what it polls, and the calls that it makes at once.

A webhook: a service posts updates to the HTTP API, which puts them into the queue.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, ClassVar

from core.errors import SetupError
from core.threads.files import Fetch
from core.updates.bot_calls import Make
from couriers.channel import Receiving
from couriers.receiving.poller import IdOf, Source


@dataclass(frozen=True)
class Receiver:
    """`source`: is polled, None if updates are posted to the HTTP API. `keep_subscription`: runs until cancelled, so
    that they are. `make`: makes the calls of `core.updates.bot_calls`, None if there are none. `fetch`: fetches the
    files of a message, None if that is not possible. `refused`: what these raise if the account is refused.

    `begin`: checks the account at the start of a process that has no other, and returns its name; raises SetupError.
    `keeps_position`: the provider knows where the next poll begins, so it is not stored. `id_of`: the id of an
    update, for the log of one that is no event; None if the provider sends such ones all the time. `caught_up`: is set
    when all updates that waited were got, None if that does not matter.
    """

    client: Any
    refused: type[Exception]
    close: Callable[[], Awaitable[None]]
    source: Source | None = None
    keep_subscription: Callable[[], Coroutine[Any, Any, None]] | None = None
    make: Make | None = None
    fetch: Fetch | None = None
    begin: Callable[[], Awaitable[str]] | None = None
    keeps_position: bool = False
    id_of: IdOf | None = None
    caught_up: asyncio.Event | None = None


def open_receiver(receiving: Receiving, settings: Any, *, polls: bool = False) -> Receiver:
    """Open the account of a channel; with `polls` it is polled, whatever the settings say. Raises SetupError."""
    receiver: Receiver = import_module(receiving.receiver).open_receiver(settings, polls=polls)
    return receiver


_SECRET = re.compile(r"[A-Za-z0-9_-]{1,256}")


@dataclass(frozen=True)
class WebhookReceiver:
    """`url`: the HTTP API as the service reaches it, without a path. `secret`: what the service proves itself with."""

    path: ClassVar[str]
    url_setting: ClassVar[str]
    secret_setting: ClassVar[str]
    shortest_secret: ClassVar[int] = 1

    url: str
    secret: str = field(repr=False)

    def __post_init__(self) -> None:
        """Check the URL and the secret. Raises SetupError."""
        if not self.url.startswith("https://") and not self.url.startswith("http://"):
            raise SetupError(f"{self.url_setting} is not a URL: it must begin with https://")
        if not _SECRET.fullmatch(self.secret) or len(self.secret) < self.shortest_secret:
            wanted = f"{self.shortest_secret} to 256 letters, digits, _ and -"
            raise SetupError(f"{self.secret_setting} must have {wanted} for a webhook")

    @property
    def address(self) -> str:
        """The address to which the service posts."""
        return self.url.rstrip("/") + self.path
