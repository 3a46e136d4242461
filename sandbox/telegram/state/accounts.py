"""Accounts: the messages each one sent, its throttles, and its recent updates."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil
from typing import Any

from sandbox.rate_limit import RateLimit
from sandbox.telegram.protocol.key_store import KeyStore, SavedAccount
from sandbox.telegram.state.dialogs import Dialogs, Uploads

RESERVED_IDS = 10_000
MAX_UPDATES = 1_000


@dataclass(slots=True)
class SentMessage:
    """The message of one random id."""

    message: int  # its id; 0 while it is still being processed
    at: int  # unix seconds
    duplicates: int = 0  # how many more repeats are refused because the first call is still being processed


@dataclass(frozen=True, slots=True)
class PushedUpdate:
    """One update sent to the account's clients, kept for updates.getDifference."""

    pts: int
    update: Any
    users: list[Any]


@dataclass(slots=True)
class Account:
    """One bot or user."""

    saved: SavedAccount
    reserve: Callable[[SavedAccount], None]
    last_message_id: int  # also the account's pts
    sent_messages: dict[tuple[str, int], SentMessage] = field(default_factory=dict)  # by (address, random id)
    newest_message_to: dict[str, int] = field(default_factory=dict)  # by address: the id of the newest message
    throttled_until: dict[str, float] = field(default_factory=dict)  # by method or "to <address>"
    disconnected_messages: set[tuple[str, int]] = field(default_factory=set)  # (address, random id)
    rate_limit: RateLimit = field(default_factory=RateLimit)
    uploads: Uploads = field(default_factory=Uploads)
    dialogs: Dialogs = field(default_factory=Dialogs)
    press_answers: dict[int, str] = field(default_factory=dict)  # by the id of the query
    pushed: deque[PushedUpdate] = field(default_factory=lambda: deque(maxlen=MAX_UPDATES))

    @property
    def id(self) -> int:
        return self.saved.id

    @property
    def bot(self) -> bool:
        return self.saved.bot

    @property
    def known(self) -> set[int]:
        """Return the ids of contacts and of users who wrote to the account; `Hub.add_known_users` adds to them."""
        return self.saved.known

    def next_message_id(self) -> int:
        """Return an unused message id. Ids are reserved on disk in blocks, so none is reused after a kill."""
        self.last_message_id += 1
        if self.last_message_id > self.saved.reserved:
            self.saved.reserved = self.last_message_id + RESERVED_IDS
            self.reserve(self.saved)
        return self.last_message_id

    def throttle_seconds(self, key: str, now: float) -> int:
        """Return the seconds, rounded up, until the throttle ends; 0 if there is none."""
        left = self.throttled_until.get(key, 0) - now
        if left > 0:
            return ceil(left)
        self.throttled_until.pop(key, None)
        return 0


class Accounts:
    """All accounts, including those of earlier runs."""

    def __init__(self, key_store: KeyStore) -> None:
        self._key_store = key_store
        self._all = {saved.id: self._account(saved) for saved in key_store.accounts.values()}

    def get(self, user_id: int) -> Account:
        return self._all[user_id]

    def all(self) -> list[Account]:
        return list(self._all.values())

    def open_account(self, user_id: int, *, bot: bool) -> Account:
        """Return the account with this id; create it at its first sign-in."""
        if user_id not in self._all:
            saved = SavedAccount(user_id, bot)
            self._key_store.save_account(saved)
            self._all[user_id] = self._account(saved)
        return self._all[user_id]

    def _account(self, saved: SavedAccount) -> Account:
        return Account(
            saved, self._key_store.save_account, last_message_id=max(1, saved.reserved)
        )  # clients read pts 0 as "no state"
