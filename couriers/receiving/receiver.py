"""An account of a channel, as the process of its bot uses it: what it polls, and the calls that it makes at once."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from core.updates.bot_calls import Make
from couriers.channel import Receiving
from couriers.receiving.poller import IdOf, Source


@dataclass(frozen=True)
class Receiver:
    """`source`: is polled, None if updates are posted to the HTTP API. `keep_subscription`: runs until cancelled, so
    that they are. `make`: makes the calls of `core.updates.bot_calls`, None if there are none. `refused`: what these
    raise if the account is refused.

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
    begin: Callable[[], Awaitable[str]] | None = None
    keeps_position: bool = False
    id_of: IdOf | None = None
    caught_up: asyncio.Event | None = None


def open_receiver(receiving: Receiving, settings: Any, *, polls: bool = False) -> Receiver:
    """Open the account of a channel; with `polls` it is polled, whatever the settings say. Raises SetupError."""
    receiver: Receiver = import_module(receiving.receiver).open_receiver(settings, polls=polls)
    return receiver
