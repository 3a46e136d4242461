"""What people write back: to which delivery and recipient a reply belongs, and which choice a number means.

    ReceivedMessages   the messages that an address has received and may reply to
    ReplyAddresses     `reply+TOKEN@school.example`, one for each mail of a delivery
    Choices            the choices of the last message to an address: its numbers, and the words of its buttons

`couriers.sending` notes what was sent, `core.updates.events` recognises replies, `core.threads` places them.

Only deliveries with `replies` are noted, so all others cost nothing. The newest `MOST` messages of an address stand in
a list; older ones are found by their id. All lead to their delivery for 90 days longer than histories are kept. What
was sent to a topic of a group chat is noted under the topic, in which people write. A process that is killed between
sending and noting leaves its messages unknown here: a reply that quotes one is placed as one that quotes nothing.

The token of a reply address names delivery, recipient and contact. It is encrypted and signed: only the installation
reads and makes one. It is in lower case and the local part has at most 64 characters, as mail servers expect it.

A channel without buttons shows choices in their place, which a number answers. A later message without choices removes
them: a number then answers that message. The words of a button are a press in every channel. Where buttons are shown, a
message without any leaves those above it, which people still see.

    Which day?
    1. Today                        Button("Today", data="today")
    2. Tomorrow                     Button("Tomorrow", data="tomorrow")
    Site: https://example.org       Button("Site", url="https://example.org")
"""

import asyncio
import re
import struct
from base64 import b32decode, b32encode, urlsafe_b64decode, urlsafe_b64encode
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from hashlib import blake2b
from typing import NamedTuple

import msgspec

from core.deliveries.delivery_reports import EntryName
from core.deliveries.histories.parcels import load_parcel
from core.deliveries.histories.reader import HistoryReader
from core.errors import Forbidden
from core.model.clock import to_ms
from core.model.contacts.addresses import canonical
from core.model.content import Button, Content
from core.model.history_key import HistoryKey, code_of
from core.model.json_form import compact_json
from core.model.text.characters import folded
from core.redis.installation_secrets import Sealing
from core.redis.keys import KEYS
from core.redis.store import Store

MOST = 100
_NOTED_MS = timedelta(days=3) // timedelta(milliseconds=1)
"""Longer than providers let people edit a message."""
_MOST_NOTED = 1000
"""More than one person passes on in that time within the limits."""
_PLACE = struct.Struct(">H8sHHB")
_TOKEN = re.compile("[a-z2-7]{50}")
MOST_CHOICES = 99
_LONGEST_WORDS = 100
_WORD = re.compile(r"\w+")
_ANSWER = re.compile(r"\s*([1-9][0-9]?)\s*[.)]?\s*")
_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(list[Button])
LIFETIME = timedelta(days=1)


class ReceivedMessage(NamedTuple):
    """`reference`: the provider's id of the message, "" if it has none. `number`: of the recipient in the delivery.
    `at`: Unix ms, 0 if it was found by its id.
    """

    reference: str
    key: HistoryKey
    number: int
    at: int = 0


class ReceivedMessages:
    """One per process. Methods raise StoreError."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def note(self, tenant: str, channel: str, received: Sequence[tuple[str, ReceivedMessage]]) -> None:
        """Note messages that were sent. `received`: the address of each, and the message."""
        by_shard = defaultdict[int, list[Sequence[str]]](list)
        for address, one in received:
            parts = [f"{part} {one.key.id} {one.number}" for part in one.reference.split(",")]
            place = _topic_in(address, one.reference) or address
            by_shard[self._store.shard_of_person(tenant, channel, place)].append([tenant, channel, place, *parts])
        for shard, rows in by_shard.items():
            await self._store.run("note_received", shard, MOST, compact_json(rows))

    async def quoted(self, tenant: str, channel: str, address: str, reference: str) -> ReceivedMessage | None:
        """Return the message with this id that an address has received."""
        shard = self._store.shard_of_person(tenant, channel, address)
        found = str(await self._store.run("find_received", shard, tenant, channel, address, reference))
        return _read(f"{reference} {found}", 0) if found else None

    async def forget(self, tenant: str, channel: str, address: str) -> None:
        """Delete which messages an address has received, and which of its own were passed on."""
        shard = self._store.shard_of_person(tenant, channel, address)
        await self._store.run("forget_received", shard, tenant, channel, address)
        await self._store.command("DEL", KEYS["passed_on"].at(shard, tenant, channel, address))

    async def reference_in(self, tenant: str, channel: str, address: str, key: HistoryKey, number: int) -> str:
        """Return the id of the newest message of a delivery to a recipient at an address; "" if none is known."""
        found = await self._newest(tenant, channel, address)
        return next((one.reference for one in found if (one.key, one.number) == (key, number)), "")

    async def last_in_topic(self, tenant: str, channel: str, chat: str, topic: str) -> ReceivedMessage | None:
        """Return the newest message that was sent to a topic of a group chat."""
        found = await self._newest(tenant, channel, f"{chat}/{topic}")
        return found[0] if found else None

    async def last(self, tenant: str, channel: str, address: str, since: int) -> ReceivedMessage | None:
        """Return the newest message that an address has received since an ms."""
        return next(iter(await self.received_since(tenant, channel, address, since)), None)

    async def received_since(self, tenant: str, channel: str, address: str, since: int) -> list[ReceivedMessage]:
        """Return the messages that an address has received since an ms, the newest first."""
        return [one for one in await self._newest(tenant, channel, address) if one.at >= since]

    async def note_passed_on(
        self, tenant: str, channel: str, address: str, message: str, thread: str, text: str
    ) -> None:
        """Note to which thread a message of an address was passed on, and its text, for edits of it."""
        key = self._key_of_own(tenant, channel, address)
        await note_newest(self._store, key, f"{message} {thread} {_digest(text)}")

    async def thread_of(self, tenant: str, channel: str, address: str, message: str, text: str) -> str:
        """Return the thread to which a message was passed on; "" if it was not, or with this very text."""
        found = await newest(self._store, self._key_of_own(tenant, channel, address), message)
        thread, _, digest = (found or "").partition(" ")
        return thread if digest != _digest(text) else ""

    def _key_of_own(self, tenant: str, channel: str, address: str) -> str:
        return KEYS["passed_on"].at(self._store.shard_of_person(tenant, channel, address), tenant, channel, address)

    async def _newest(self, tenant: str, channel: str, address: str) -> list[ReceivedMessage]:
        key = KEYS["received"].at(self._store.shard_of_person(tenant, channel, address), tenant, channel, address)
        rows = await self._store.command("ZRANGE", key, 0, -1, "REV", "WITHSCORES")
        return [_read(text, int(at)) for text, at in rows]


async def note_newest(store: Store, key: str, row: str) -> None:
    """Note a row that begins with a name for three days, in a list of the newest rows of one address."""
    now = to_ms(store.now())
    await store.write_lasting(_NOTED_MS, "ZADD", key, now, row)
    await store.command("ZREMRANGEBYSCORE", key, "-inf", now - _NOTED_MS)
    await store.command("ZREMRANGEBYRANK", key, 0, -_MOST_NOTED - 1)


async def newest(store: Store, key: str, name: str) -> str | None:
    """Return the rest of the newest row with a name; None if it is not noted."""
    rows: list[str] = await store.command("ZRANGE", key, 0, -1, "REV")
    return next((row.removeprefix(f"{name} ") for row in rows if row.startswith(f"{name} ")), None)


def _topic_in(address: str, reference: str) -> str:
    """Return the topic in which a message with this id is; "" if its address is no topic."""
    chat, marked, _ = address.partition("#")
    topic, divided, _ = reference.partition("/")
    return f"{chat}/{topic}" if marked and divided and chat.startswith("-") else ""


def _digest(text: str) -> str:
    return blake2b(text.encode(errors="replace"), digest_size=12).hexdigest()


def _read(text: str, at: int) -> ReceivedMessage:
    reference, key, number = text.rsplit(" ", 2)
    return ReceivedMessage(reference, HistoryKey.parse(key), int(number), at)


ABOUT = "about:"
"""Begins `replies` of what Ada says about an answer; the message with the question follows: replies belong to it."""


class MessagePlace(NamedTuple):
    """One message: the entry of a parcel of a delivery. `number`: of the recipient."""

    key: HistoryKey
    number: int
    parcel: int
    contact: int

    @property
    def as_replies(self) -> str:
        """Return `replies` of a delivery to which replies are replies to this message."""
        return f"{ABOUT}{self.key.id} {self.number} {self.parcel} {self.contact}"

    @classmethod
    def of_replies(cls, replies: str) -> "MessagePlace | None":
        if not replies.startswith(ABOUT):
            return None
        key, *numbers = replies.removeprefix(ABOUT).rsplit(" ", 3)
        return cls(HistoryKey.parse(key), *map(int, numbers))


class MailedRecipient(NamedTuple):
    """The recipient of a mail. `number`: its place in the delivery. `takes_replies`: somebody reads replies. `entry`:
    under which the outcome is recorded.
    """

    tenant: str
    key: HistoryKey
    number: int
    address: str
    takes_replies: bool
    entry: EntryName


class ReplyAddresses:
    """One per process. `channel`: whose messages are mails. Methods raise StoreError."""

    def __init__(self, store: Store, channel: str) -> None:
        self._store = store
        self._channel = channel
        self._sealing = Sealing(store, "reply-addresses")
        self._reader = HistoryReader(store)

    async def address(self, mailbox: str, place: MessagePlace) -> str:
        """Return the address at which a reply to a mail is received, and note where it leads. A repeat returns the
        same. `mailbox`: such as reply@school.example.
        """
        key, code = place.key, code_of(place.key)
        packed = _PLACE.pack(key.shard, urlsafe_b64decode(f"{code}="), place.number, place.parcel, place.contact)
        token = b32encode(await self._sealing.seal(packed)).decode().rstrip("=").lower()
        await self._store.run("note_mailed", key.shard, code, key.suffix)
        local, _, domain = mailbox.rpartition("@")
        return f"{local}+{token}@{domain}"

    async def recipient(self, token: str) -> MailedRecipient:
        """Return the recipient of the mail with this token. Raises Forbidden MAIL_TOKEN_WRONG if it was not made
        here, or has expired.
        """
        if _TOKEN.fullmatch(token) is None:
            raise _wrong()
        try:
            opened = await self._sealing.open(b32decode(f"{token.upper()}======"))
        except ValueError:
            raise _wrong() from None
        shard, code, number, parcel, contact = _PLACE.unpack(opened)
        place = KEYS["mailed"].at(shard, urlsafe_b64encode(code).decode().rstrip("="))
        suffix = await self._store.command("GET", place) if shard < self._store.shards else None
        if not suffix:
            raise _wrong()
        key, field = HistoryKey.of(shard, str(suffix)), f"parcel:{self._channel}:{parcel}"
        fields = await self._reader.read_fields(key, ["tenant", "replies", field])
        entries = load_parcel(stored)[1] if (stored := fields[field]) else ()
        entry = next((one for one in entries if (one.number, one.contact) == (number, contact)), None)
        if not entry or not entry.address or not fields["tenant"]:
            raise _wrong()
        name = EntryName(key.shard, key.suffix, self._channel, parcel, *entry[:4])
        return MailedRecipient(fields["tenant"], key, number, entry.address, bool(fields["replies"]), name)


def tokens_in(mailbox: str, addresses: Iterable[str]) -> list[str]:
    """Return the tokens of the addresses that were made for a mailbox, as they are written."""
    local, _, domain = mailbox.lower().rpartition("@")
    found = [one.lower().rpartition("@") for one in addresses]
    prefix = f"{local}+"
    return [before.removeprefix(prefix) for before, _, after in found if after == domain and before.startswith(prefix)]


def _wrong() -> Forbidden:
    return Forbidden("MAIL_TOKEN_WRONG", "No mail of this installation has such an address to reply to.")


def choices_of(content: Content) -> list[Button]:
    """Return the buttons that a number means, in order. One of the reply keyboard has no data: a press writes its
    text."""
    inline = [button for row in content.inline for button in row if not button.url]
    return [*inline, *(Button(label) for row in content.reply or () for label in row)][:MOST_CHOICES]


def choice_lines(content: Content) -> list[str]:
    """Return the lines that show all buttons: choices with their number, addresses with their text."""
    numbered = [f"{number}. {button.text}" for number, button in enumerate(choices_of(content), 1)]
    return [*numbered, *_links(content)]


def _links(content: Content) -> Iterator[str]:
    for row in content.inline:
        yield from (f"{button.text}: {button.url}" for button in row if button.url)


def encode_choices(choices: Sequence[Button]) -> str:
    return _encoder.encode(choices).decode()


def may_be_answer(text: str) -> bool:
    """Return whether a text has the form of an answer: a number, perhaps with a full stop or a bracket behind it."""
    return _ANSWER.fullmatch(text) is not None


def chosen(encoded: str, text: str) -> Button | None:
    """Return the button that an answer means; None if it is no number, or none of these."""
    found = _ANSWER.fullmatch(text)
    choices = _decoder.decode(encoded)
    return choices[int(found[1]) - 1] if found and int(found[1]) <= len(choices) else None


def named(buttons: Sequence[Button], text: str) -> Button | None:
    """Return the one button with these words, without regard to capitals, signs and emoji around them."""
    for read in (folded, _words):
        found = {one.data: one for one in buttons if one.data and read(one.text) and read(one.text) == read(text)}
        if found:
            return next(iter(found.values())) if len(found) == 1 else None
    return None


def _words(text: str) -> str:
    return " ".join(_WORD.findall(folded(text)))


class Choices:
    """One per process. Methods raise StoreError."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def remember(self, tenant: str, channel: str, addresses: Iterable[str], choices: Sequence[Button]) -> None:
        """Replace the choices of these addresses; without choices, remove them."""
        keys = [self._key(tenant, channel, address) for address in addresses]
        if not choices:
            await asyncio.gather(*(self._store.command("DEL", key) for key in keys))
            return
        encoded, seconds = encode_choices(choices), LIFETIME // timedelta(seconds=1)
        await asyncio.gather(*(self._store.command("SET", key, encoded, "EX", seconds) for key in keys))

    async def button_of(self, tenant: str, channel: str, address: str, text: str) -> Button | None:
        """Return the button that a text answers; None if it is no number or there is no such choice."""
        if not may_be_answer(text):
            return None
        encoded = await self._store.command("GET", self._key(tenant, channel, address))
        return chosen(encoded, text) if encoded else None

    async def remember_buttons(
        self, tenant: str, channel: str, addresses: Iterable[str], buttons: Sequence[Button]
    ) -> None:
        """Replace the buttons that these addresses see below a message."""
        encoded, seconds = encode_choices(buttons), LIFETIME // timedelta(seconds=1)
        keys = [self._key(tenant, channel, address, "buttons") for address in addresses]
        await asyncio.gather(*(self._store.command("SET", key, encoded, "EX", seconds) for key in keys))

    async def worded(self, tenant: str, channel: str, address: str, text: str) -> Button | None:
        """Return the button whose words a text is; None if there is none, or several."""
        if not 0 < len(text.strip()) <= _LONGEST_WORDS:
            return None
        keys = [self._key(tenant, channel, address, name) for name in ("buttons", "choices")]
        stored = await asyncio.gather(*(self._store.command("GET", key) for key in keys))
        return named([button for encoded in stored if encoded for button in _decoder.decode(encoded)], text)

    def _key(self, tenant: str, channel: str, address: str, name: str = "choices") -> str:
        """Return the Redis key. An address may be written in several ways."""
        known = canonical(channel, address)
        return KEYS[name].at(self._store.shard_of_person(tenant, channel, known), tenant, channel, known)
