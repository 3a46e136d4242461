"""The state that all connections share, and pushing updates to the clients of an account."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from telethon.tl import types

from sandbox.state import SandboxState
from sandbox.telegram.protocol.key_store import AuthKey, KeyStore
from sandbox.telegram.state import identities
from sandbox.telegram.state.accounts import Account, Accounts, PushedUpdate


class Client(Protocol):
    """A connection as the methods see it. A Protocol, because `connection` imports this module."""

    key: AuthKey
    wants_updates: bool
    address: tuple[str, int]  # the address of this server that the client connected to

    def push(self, update: Any) -> None: ...

    def close(self) -> None: ...

    def abort(self) -> None: ...


@dataclass(slots=True)
class Hub:
    """The state shared by all connections of one server."""

    state: SandboxState
    key_store: KeyStore
    clock: Callable[[], float]
    accounts: Accounts
    clients: set[Client] = field(default_factory=set)
    channels: dict[int, int] = field(default_factory=dict)  # by channel id: its newest message id, also its pts

    def next_channel_message_id(self, channel: int) -> int:
        self.channels[channel] = self.channels.get(channel, 0) + 1
        return self.channels[channel]

    def add_known_users(self, account: Account, users: Iterable[int]) -> None:
        """Make the users known to the account; this outlives a restart."""
        self.key_store.save_known_users(account.saved, users)

    def push(self, account: Account, update: Any, users: list[Any]) -> None:
        """Send an update to the account's connected clients and keep it for updates.getDifference."""
        account.pushed.append(PushedUpdate(update.pts, update, users))
        self.push_unkept(account, update, users)

    def push_unkept(self, account: Account, update: Any, users: list[Any]) -> None:
        """Send an update to the account's connected clients."""
        updates = types.Updates([update], users=users, chats=[], date=now(), seq=0)
        for client in self.clients:
            if client.wants_updates and client.key.account == account.id:
                client.push(updates)


@dataclass(frozen=True, slots=True)
class Call:
    """One request of one client, without wrappers."""

    hub: Hub
    client: Client
    request: Any
    method: str  # "sendMessage"

    @property
    def account(self) -> Account:
        """Return the account that calls. The dispatcher refuses calls without an account."""
        user_id = self.client.key.account
        assert user_id is not None
        return self.hub.accounts.get(user_id)


def now() -> int:
    return int(time.time())


def user(viewer: Account, user_id: int, *, username: str | None = None) -> Any:
    """Return the user with this id as `viewer` sees it. Phones are shown only to accounts that know the user."""
    first, last = identities.name_of(user_id)
    is_self = user_id == viewer.id
    return types.User(
        id=user_id,
        is_self=is_self or None,
        bot=(is_self and viewer.bot) or None,
        bot_info_version=1 if is_self and viewer.bot else None,
        contact=(not viewer.bot and user_id in viewer.known) or None,
        access_hash=identities.access_hash(viewer.id, str(user_id)),
        first_name=first,
        last_name=last,
        username=username or identities.username_of(user_id),
        phone=_visible_phone(viewer, user_id),
    )


def channel(viewer: Account, channel_id: int) -> Any:
    """Return the supergroup with this id as `viewer` sees it."""
    return types.Channel(
        id=channel_id,
        title=f"Группа {channel_id}",
        photo=types.ChatPhotoEmpty(),
        date=now(),
        megagroup=True,
        access_hash=identities.access_hash(viewer.id, f"-100{channel_id}"),
    )


def _visible_phone(viewer: Account, user_id: int) -> str | None:
    visible = not viewer.bot and (user_id == viewer.id or user_id in viewer.known)
    return identities.phone_of(user_id) if visible else None
