"""What all connections share, and how something reaches the clients of an account unasked."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from telethon.tl import types

from sandbox.state import World
from sandbox.telegram import identities as persons
from sandbox.telegram.accounts import Account, Accounts, Pushed
from sandbox.telegram.key_store import AuthKey, Vault


class Client(Protocol):
    """One connection, as far as the methods and the updates need it."""

    key: AuthKey
    wants_updates: bool
    address: tuple[str, int]  # where the client found this server

    def push(self, update: Any) -> None: ...

    def close(self) -> None: ...

    def abort(self) -> None: ...


@dataclass(slots=True)
class Platform:
    """The one Telegram that every connection talks to."""

    world: World
    vault: Vault
    clock: Callable[[], float]
    accounts: Accounts
    clients: set[Client] = field(default_factory=set)
    channels: dict[int, int] = field(default_factory=dict)  # channel id → its newest message, which is also its pts

    def next_in_channel(self, channel: int) -> int:
        self.channels[channel] = self.channels.get(channel, 0) + 1
        return self.channels[channel]

    def meet(self, account: Account, people: Iterable[int]) -> None:
        """Let the account know these people from now on, over restarts too."""
        self.vault.keep_known(account.saved, people)

    def push(self, account: Account, update: Any, users: list[Any]) -> None:
        """Send an update to the account's connected clients and keep it for those who ask later."""
        account.pushed.append(Pushed(update.pts, update, users))
        updates = types.Updates([update], users=users, chats=[], date=now(), seq=0)
        for client in self.clients:
            if client.wants_updates and client.key.account == account.id:
                client.push(updates)


@dataclass(frozen=True, slots=True)
class Call:
    """One request of one client, unwrapped."""

    platform: Platform
    client: Client
    request: Any
    method: str  # "sendMessage"

    @property
    def account(self) -> Account:
        """Return who calls; the dispatcher lets nobody without an account reach a method that asks."""
        identity = self.client.key.account
        assert identity is not None
        return self.platform.accounts.get(identity)


def now() -> int:
    return int(time.time())


def user(viewer: Account, identity: int, *, username: str | None = None) -> Any:
    """Return the person, bot or account of this id as `viewer` sees him; phones are shown to contacts only."""
    first, last = persons.name_of(identity)
    myself = identity == viewer.id
    return types.User(
        id=identity,
        is_self=myself or None,
        bot=(myself and viewer.bot) or None,
        bot_info_version=1 if myself and viewer.bot else None,
        contact=(not viewer.bot and identity in viewer.known) or None,
        access_hash=persons.access_hash(viewer.id, str(identity)),
        first_name=first,
        last_name=last,
        username=username or persons.username_of(identity),
        phone=_shown_phone(viewer, identity),
    )


def channel(viewer: Account, identity: int) -> Any:
    """Return the supergroup of this id as `viewer` sees it."""
    return types.Channel(
        id=identity,
        title=f"Группа {identity}",
        photo=types.ChatPhotoEmpty(),
        date=now(),
        megagroup=True,
        access_hash=persons.access_hash(viewer.id, f"-100{identity}"),
    )


def _shown_phone(viewer: Account, identity: int) -> str | None:
    shown = not viewer.bot and (identity == viewer.id or identity in viewer.known)
    return persons.phone_of(identity) if shown else None
