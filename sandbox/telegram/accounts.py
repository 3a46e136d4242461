"""Accounts: who is signed in, what each one sent and must wait for, and the updates it was owed."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil
from typing import Any

from sandbox.telegram.key_store import Saved, Vault

RESERVED_AT_ONCE = 10_000
UPDATES_KEPT = 1_000


@dataclass(slots=True)
class Kept:
    """What became of one random id."""

    message: int  # its number at Telegram; 0 while it is still being processed
    at: int  # unix seconds
    duplicates: int = 0  # how many more repeats are told that the first call is still running


@dataclass(frozen=True, slots=True)
class Pushed:
    """One update that the account's clients were sent, kept for updates.getDifference."""

    pts: int
    update: Any
    users: list[Any]


@dataclass(slots=True)
class Account:
    """One bot or user."""

    saved: Saved
    reserve: Callable[[Saved], None]
    serial: int  # the newest message id, which is also the account's pts
    sent: dict[tuple[str, int], Kept] = field(default_factory=dict)  # (address, random id) → what became of it
    newest_to: dict[str, int] = field(default_factory=dict)  # address → the newest message sent there
    waits: dict[str, float] = field(default_factory=dict)  # method or "to <address>" → when it ends
    cut: set[tuple[str, int]] = field(default_factory=set)  # messages whose connection was cut once
    pushed: deque[Pushed] = field(default_factory=lambda: deque(maxlen=UPDATES_KEPT))

    @property
    def id(self) -> int:
        return self.saved.id

    @property
    def bot(self) -> bool:
        return self.saved.bot

    @property
    def known(self) -> set[int]:
        """Return the contacts and the people who wrote; `Platform.meet` adds to them."""
        return self.saved.known

    def next_serial(self) -> int:
        """Return a number never given before, not even by a process that was killed: blocks are written down first."""
        self.serial += 1
        if self.serial > self.saved.reserved:
            self.saved.reserved = self.serial + RESERVED_AT_ONCE
            self.reserve(self.saved)
        return self.serial

    def remaining(self, what: str, now: float) -> int:
        """Return the full seconds that a wait is still in force, 0 when there is none."""
        left = self.waits.get(what, 0) - now
        if left > 0:
            return ceil(left)
        self.waits.pop(what, None)
        return 0


class Accounts:
    """All accounts, those of earlier runs included."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault
        self._all = {saved.id: self._live(saved) for saved in vault.accounts.values()}

    def get(self, identity: int) -> Account:
        return self._all[identity]

    def all(self) -> list[Account]:
        return list(self._all.values())

    def signed_in(self, identity: int, *, bot: bool) -> Account:
        """Return the account of this id, opened at its first sign-in."""
        if identity not in self._all:
            saved = Saved(identity, bot)
            self._vault.keep_account(saved)
            self._all[identity] = self._live(saved)
        return self._all[identity]

    def _live(self, saved: Saved) -> Account:
        return Account(saved, self._vault.keep_account, serial=max(1, saved.reserved))  # 0 means "no state" to clients
