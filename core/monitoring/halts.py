"""Notes that an account of a channel has stopped, and informs those who can repair it: once for each stop (W-34). Tells
administrators of deliveries that are not sent because their senders may not write any more.

The note lasts until the account works again, and ten minutes longer: a process that is restarted over and over, and
stops each time, is one stop. The message goes before the note, so a process that is killed between them informs again.

Called by `cli.commands.parts.courier`; read by `delivery.api.deliveries.sender`.
"""

import time
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import timedelta
from hashlib import blake2b

import msgspec

from core.deliveries.channels import Channels
from core.deliveries.deliveries import Deliveries
from core.directory import Directory
from core.model.contacts.addresses import channel_title
from core.model.delivery import NewDelivery, Recipient, Repeat, Sender, Strategy
from core.model.history_key import HistoryKey
from core.model.people import User
from core.model.states import Reason
from core.redis.keys import KEYS
from core.redis.store import Store
from core.sentence import LANGUAGES, Text, in_language, language_of, language_of_text, say

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
        digest = blake2b(str(reason).encode(errors="replace"), digest_size=8).hexdigest()
        turn = int(time.time() // _SAME_STOP.total_seconds())

        def said(language: str) -> str:
            why = in_language(reason, language).rstrip(".")
            return say("account_halted", language, channel=channel_title(channel, language), name=channel, reason=why)

        repeat = f"halt {channel} {tenant} {digest} {turn}"
        return await self._tell(self._repairers(tenant), self._home_of(tenant), said, repeat, without=channel)

    async def report_refusal(self, tenant: str, key: HistoryKey, why: Reason) -> None:
        """Tell the administrators of a tenant, once, that a delivery is not sent: its sender may not write any more.
        Raises StoreError.
        """
        history = await self._deliveries.read(key, tenant, limit=1)
        sender = str(history.sender.get("name") or history.sender.get("id") or key.sender)

        def said(language: str) -> str:
            return say("sender_refused", language, sender=sender, why=say(f"why_{why}", language), text=history.text)

        of_text = language_of_text(history.text)
        await self._tell(self._people(tenant, role=_ADMIN), tenant, said, f"refused {key} {why}", of_text=of_text)

    async def _tell(
        self,
        readers: AsyncIterator[User],
        tenant: str,
        said: Callable[[str], str],
        repeat: str,
        without: str = "",
        of_text: str = "",
    ) -> int:
        """Send a text to people, once for a name, in the first channel of each that works; return to how many. `said`:
        the text in a language; `repeat`: the name; `without`: a channel that is not used; `of_text`: the language of
        what the text is about.
        """
        views = await self._channels.views()
        usable = [one for one in views if one.facts and not one.facts.halted and one.name != without]
        usable.sort(key=lambda one: bool(one.display and one.display.limits.in_sms))
        names = [one.name for one in usable]
        people = [user async for user in readers if _contacts(user, names)]
        for language in LANGUAGES:
            of_language = [user for user in people if language_of(user.locale, of_text) == language]
            if of_language:
                await self._send(tenant, said(language), of_language, names, f"{repeat} {language}")
        return len(people)

    async def _send(self, tenant: str, text: str, readers: Sequence[User], names: Sequence[str], repeat: str) -> None:
        message = NewDelivery(
            tenant=tenant,
            sender=_SENDER,
            text=text,
            recipients=[Recipient(user.id, user.name, _contacts(user, names)) for user in readers],
            channels=names,
            origin="halt",
            kind=KIND,
            strategy=Strategy.FIRST,
        )
        await self._deliveries.enqueue(message, Repeat(repeat, KIND))

    def _home_of(self, tenant: str) -> str:
        return self._home if self._operators or not tenant else tenant

    def _repairers(self, tenant: str) -> AsyncIterator[User]:
        group, role = (self._operators, None) if self._operators else (None, _ADMIN)
        return self._people(self._home_of(tenant), group=group, role=role)

    async def _people(self, tenant: str, *, group: str | None = None, role: str | None = None) -> AsyncIterator[User]:
        cursor: str | None = ""
        while cursor is not None:
            page = await self._directory.users.page(tenant, group=group, role=role, cursor=cursor or None)
            for user in page.items:
                if not user.blocked:
                    yield user
            cursor = page.next


async def halt_of(store: Store, channel: str, tenant: str = "") -> Halt | None:
    """Return the last stop of an account, None without one that is known."""
    text = await store.command("GET", _key(channel, tenant))
    return msgspec.json.decode(text, type=Halt) if text else None


def _contacts(user: User, names: Sequence[str]) -> dict[str, Sequence[str]]:
    return {name: user.contacts[name] for name in names if user.contacts.get(name) and user.accepts(name)}


def _key(channel: str, tenant: str) -> str:
    return KEYS["halt"].at(0, channel, tenant or "*")


def _encode(halt: Halt) -> str:
    return msgspec.json.encode(halt).decode()


def _ms(time: timedelta) -> int:
    return int(time.total_seconds() * 1000)
