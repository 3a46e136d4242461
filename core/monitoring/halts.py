"""Notes that an account of a channel has stopped, and informs those who can repair it: once for each stop (W-34).

The note lasts until the account works again, and ten minutes longer: a process that is restarted over and over, and
stops each time, is one stop. The message goes before the note, so a process that is killed between them informs again.

Called by `cli.commands.parts.courier`; read by `delivery.api.deliveries.sender`.
"""

import time
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from hashlib import blake2b
from itertools import groupby

import msgspec

from core.deliveries.channels import Channels
from core.deliveries.deliveries import Deliveries
from core.directory import Directory
from core.model.contacts.addresses import channel_title
from core.model.delivery import NewDelivery, Recipient, Repeat, Sender, Strategy
from core.model.people import User
from core.redis.keys import KEYS
from core.redis.store import Store
from core.sentence import Text, in_language, language_of, say

KIND = "halted"
_ADMIN = "admin"
_SENDER = Sender("ada", "Ada")
_SAME_STOP = timedelta(minutes=10)
_KEPT = timedelta(days=30)


class Halt(msgspec.Struct, frozen=True):
    """A stop. `informed`: how many people got a message about it. `at`: when, Unix ms. `is_over`: it works again."""

    reason: str
    informed: int
    at: int
    is_over: bool = False


class Halts:
    """One per process. `tenant`: that of the installation, whose people are informed of an account of all tenants.
    `operators`: a group of it that is informed of every stop, "" for the people with the role admin of the tenant that
    is concerned.
    """

    def __init__(self, store: Store, channels: Channels, tenant: str, operators: str = "") -> None:
        self._store = store
        self._channels = channels
        self._deliveries = Deliveries(store, channels)
        self._directory = Directory(store)
        self._home = tenant
        self._operators = operators

    async def note(self, channel: str, reason: Text, tenant: str = "") -> None:
        """Note that an account has stopped; inform the operators unless that is known. `tenant`: whose account it is,
        "" for the one of all. Raises StoreError.
        """
        known = await halt_of(self._store, channel, tenant)
        is_known = known is not None and known.reason == str(reason)
        informed = known.informed if known and is_known else await self._inform(channel, reason, tenant)
        halt = Halt(str(reason), informed, int(time.time() * 1000))
        await self._store.command("SET", _key(channel, tenant), _encode(halt), "PX", _ms(_KEPT))

    async def works(self, channel: str, tenant: str = "") -> None:
        """Note that an account has been accepted. Raises StoreError."""
        if (known := await halt_of(self._store, channel, tenant)) and not known.is_over:
            over = _encode(msgspec.structs.replace(known, is_over=True))
            await self._store.command("SET", _key(channel, tenant), over, "PX", _ms(_SAME_STOP))

    async def _inform(self, channel: str, reason: Text, tenant: str) -> int:
        """Send a message to those who can repair it, over the other channels; return to how many."""
        views = await self._channels.views()
        usable = [one for one in views if one.facts and not one.facts.halted and one.name != channel]
        usable.sort(key=lambda one: bool(one.display and one.display.limits.in_sms))
        names = [one.name for one in usable]
        people = [user async for user in self._repairers(tenant) if _contacts(user, names)]
        people.sort(key=lambda user: user.locale)
        for locale, readers in groupby(people, key=lambda user: user.locale):
            await self._send(channel, reason, tenant, locale, list(readers), names)
        return len(people)

    async def _send(
        self, channel: str, reason: Text, tenant: str, locale: str, readers: Sequence[User], names: Sequence[str]
    ) -> None:
        language = language_of(locale)
        why = in_language(reason, language).rstrip(".")
        text = say("account_halted", locale, channel=channel_title(channel, language), name=channel, reason=why)
        message = NewDelivery(
            tenant=self._home if self._operators or not tenant else tenant,
            sender=_SENDER,
            text=text,
            recipients=[Recipient(user.id, user.name, _contacts(user, names)) for user in readers],
            channels=names,
            origin="halt",
            kind=KIND,
            strategy=Strategy.FIRST,
        )
        digest = blake2b(str(reason).encode(errors="replace"), digest_size=8).hexdigest()
        turn = int(time.time() // _SAME_STOP.total_seconds())
        await self._deliveries.enqueue(message, Repeat(f"halt {channel} {tenant} {locale} {digest} {turn}", KIND))

    async def _repairers(self, tenant: str) -> AsyncIterator[User]:
        where = self._home if self._operators or not tenant else tenant
        group, role = (self._operators, None) if self._operators else (None, _ADMIN)
        cursor: str | None = ""
        while cursor is not None:
            page = await self._directory.users.page(where, group=group, role=role, cursor=cursor or None)
            for user in page.items:
                if not user.blocked:
                    yield user
            cursor = page.next


async def halt_of(store: Store, channel: str, tenant: str = "") -> Halt | None:
    """Return the last stop of an account, None without one that is known."""
    text = await store.command("GET", _key(channel, tenant))
    return msgspec.json.decode(text, type=Halt) if text else None


def _contacts(user: User, names: Sequence[str]) -> dict[str, Sequence[str]]:
    return {name: user.contacts[name] for name in names if user.contacts.get(name) and name not in user.opt_out}


def _key(channel: str, tenant: str) -> str:
    return KEYS["halt"].at(0, channel, tenant or "*")


def _encode(halt: Halt) -> str:
    return msgspec.json.encode(halt).decode()


def _ms(time: timedelta) -> int:
    return int(time.total_seconds() * 1000)
