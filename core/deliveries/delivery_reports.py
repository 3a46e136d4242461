"""What providers say about messages: delivery reports, read marks, and the exchange of each attempt.

The token of a report names one entry of one delivery and is signed with a secret of this installation, so that no one
else can mark a message as delivered. Reports may come early, late, twice and in any order (`core.model.states.RANK`).

`couriers.sending.parcel_executor` puts the token into the message's report address; `delivery/` passes the
provider's report to `record`, and a courier that has lost its lease its outcomes to `record_late`.

A provider of chats reports reading by dialog: "read up to message n". `MessageReferences` keeps the newest messages of
each dialog until they are read, for a month at most. A read mark that comes before its message is noted is not lost.
A provider of SMS may report by the id of the message alone: then each message is a dialog of its own.

An exchange is what was called, and what the provider said (D-48); `lua/delivery/modules/exchanges.lua` keeps them.
"""

import base64
import binascii
import hmac
import json
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import timedelta
from hashlib import sha256
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from core.deliveries.histories.parcels import Entry, outcome_field, split_label
from core.deliveries.histories.projection import channels_of
from core.deliveries.histories.reader import HistoryReader
from core.errors import Forbidden, NotFound
from core.model.history_key import HistoryKey, Id
from core.model.json_form import compact_json
from core.model.states import Status
from core.redis.constants import DAY_MS
from core.redis.installation_secrets import InstallationSecret
from core.redis.keys import KEYS
from core.redis.store import Store

_TTL = timedelta(days=30)
_PAGE = 500
KEPT_MS = 7 * DAY_MS
_SCANNED = 1000
_GLOB = re.compile(r"[*?\[\]\\]")


class EntryName(NamedTuple):
    """Names one entry of one delivery, without its address; `parcel` is the parcel that was attempted."""

    shard: int
    suffix: str
    channel: str
    parcel: int
    id: Id
    number: int
    contact: int
    contacts: int


class DeliveryReports:
    """One per process."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._secret = InstallationSecret(store, "receipts")

    async def token(self, key: HistoryKey, channel: str, parcel: int, entry: Entry) -> str:
        """Return a URL-safe, signed name of the entry. It does not contain the recipient's address."""
        name = EntryName(key.shard, key.suffix, channel, parcel, *entry[:4])
        body = base64.urlsafe_b64encode(compact_json(name).encode()).decode().rstrip("=")
        return f"{body}.{await self._sign(body)}"

    async def record(self, token: str, status: Status, reference: str) -> bool:
        """Return whether the history changed. Raises Forbidden RECEIPT_SECRET_WRONG, NotFound HISTORY_NOT_FOUND."""
        return await self.record_entry(EntryName(*await self._read(token)), status, reference)

    async def record_entry(
        self, name: "EntryName", status: Status, reference: str, reason: str = "", detail: str = ""
    ) -> bool:
        """Do the same for a report that came on another way. `detail`: the words of the provider. Raises NotFound
        HISTORY_NOT_FOUND.
        """
        item = Entry(*name[4:], "").item(status, reason, reference, detail=detail)
        changed = await self._store.run("record_report", *name[:4], compact_json(item))
        if changed < 0:
            raise NotFound("HISTORY_NOT_FOUND", "There is no such delivery.")
        return bool(changed)

    async def record_late(self, key: HistoryKey, channel: str, parcel: int, items: Sequence[Any]) -> None:
        """Record what a courier that has lost the lease of a parcel knows of its attempts: outcomes in the form of
        `Entry.item`. A better known outcome stays (docs/decisions/0079).
        """
        await self._store.run("record_late", key.shard, key.suffix, channel, parcel, compact_json(list(items)))

    async def _read(self, token: str) -> list[Any]:
        body, _, signature = token.rpartition(".")
        if not hmac.compare_digest(signature.encode(), (await self._sign(body)).encode()):
            raise Forbidden("RECEIPT_SECRET_WRONG", "This delivery report was not signed by us.")
        try:
            return list(json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))))
        except (ValueError, binascii.Error):
            raise Forbidden("RECEIPT_SECRET_WRONG", "This delivery report was not signed by us.") from None

    async def _sign(self, body: str) -> str:
        return hmac.new(await self._secret.key(), body.encode(), sha256).hexdigest()[:32]


class Reference(NamedTuple):
    """One message. `peer`: the provider's id of the dialog. `number`: of the message in it; later ones are higher.
    `text`: the reference that its outcome has.
    """

    peer: str
    number: int
    text: str
    entry: EntryName


class MessageReferences:
    """Of one account of one channel; one per process."""

    def __init__(self, store: Store, reports: DeliveryReports, channel: str, account: str) -> None:
        self._store = store
        self._reports = reports
        self._scope = channel, account

    async def note(self, references: Sequence[Reference]) -> None:
        """Note messages that were sent. Those that were read meanwhile are recorded as read. Raises StoreError; then
        call it again.
        """
        by_shard = defaultdict[int, list[Reference]](list)
        for one in references:
            by_shard[self._shard(one.peer)].append(one)
        for shard, of_shard in by_shard.items():
            for start in range(0, len(of_shard), _PAGE):
                await self._note_page(shard, of_shard[start : start + _PAGE])

    async def _note_page(self, shard: int, references: Sequence[Reference]) -> None:
        ttl_ms = _TTL // timedelta(milliseconds=1)
        rows = [[one.peer, one.number, _member(one)] for one in references]
        for member in await self._store.run("note_references", shard, *self._scope, ttl_ms, compact_json(rows)):
            await self._record(member)

    async def mark_read(self, peer: str, number: int) -> None:
        """Record the messages of this dialog up to `number` as read. Raises StoreError; then call it again."""
        members = await self._store.run("mark_read", self._shard(peer), *self._scope, peer, number)
        for member in members:
            await self._record(member)
        if members:
            await self._store.command("ZREM", self._key(peer), *members)

    async def report(self, reference: str, status: Status) -> bool:
        """Record what a provider reports of a message that was noted under its reference; return whether a history
        changed. Raises NotFound REFERENCE_UNKNOWN, StoreError.
        """
        members = await self._store.command("ZRANGE", self._key(reference), 0, -1)
        if not members:
            raise NotFound("REFERENCE_UNKNOWN", "No message is known by this id.")
        return any([await self._record(member, status) for member in members])

    def _shard(self, peer: str) -> int:
        return self._store.shard_of(f"{self._scope[0]}:{peer}")

    def _key(self, peer: str) -> str:
        return KEYS["references"].at(self._shard(peer), *self._scope, peer)

    async def _record(self, member: str, status: Status = Status.READ) -> bool:
        text, name = _read_member(member)
        try:
            return await self._reports.record_entry(name, status, text)
        except NotFound:
            return False  # the delivery is no longer kept


def _member(reference: Reference) -> str:
    return compact_json([reference.text, *reference.entry])


def _read_member(member: str) -> tuple[str, EntryName]:
    text, *name = json.loads(member)
    return text, EntryName(*name)


class ProviderCall(Struct, frozen=True, array_like=True):
    """One call. `status`: the provider's number, 0 without an answer. `words`: the provider's own, "" of a success.
    `after_ms`: since the attempt began. `took_ms`: with the waits for a connection and for the announcement.
    """

    method: str
    status: int
    words: str
    after_ms: int
    took_ms: int


class ExchangedAttempt(NamedTuple):
    """One attempt. `at`: when it began, Unix ms. `outcome`: "sent", "rejected", "deferred", "unknown", "halted",
    "partly". `detail`: the provider's words for this message. `calls`: those of all messages of the attempt, if a call
    carries several. Neither has a secret, an address or a text.
    """

    at: int
    outcome: str
    reason: str
    detail: str
    calls: Sequence[ProviderCall]


_decode_calls = msgspec.json.Decoder(list[ProviderCall]).decode


class Exchange(NamedTuple):
    """The provider's answer to one attempt, or to the last of `times` in a row that ended in the same way.
    `contact`: which of the recipient's contacts in the channel, from 0.
    """

    channel: str
    contact: int
    times: int
    attempt: ExchangedAttempt


class Exchanges:
    """One per process."""

    def __init__(self, store: Store, reader: HistoryReader) -> None:
        self._store = store
        self._reader = reader

    async def of_recipient(self, key: HistoryKey, tenant: str, recipient: str) -> list[Exchange]:
        """Return the attempts of the last seven days that failed, and what followed, in the order of their time.
        Raises NotFound HISTORY_NOT_FOUND.
        """
        channels = channels_of(await self._reader.fields(key, tenant))
        since = self._store.now_ms() - KEPT_MS
        found = [
            one
            for field, text in (await self._scanned(key, recipient)).items()
            if (place := _place(field, recipient, channels))
            for one in _exchanges(*place, text)
            if one.attempt.at >= since
        ]
        return sorted(found, key=lambda one: one.attempt.at)

    async def _scanned(self, key: HistoryKey, recipient: str) -> dict[str, str]:
        name, match = KEYS["exchanges"].at(key.shard, key.suffix), _GLOB.sub(r"\\\g<0>", recipient) + ":*"
        cursor, found = "0", dict[str, str]()
        while True:
            cursor, flat = await self._store.command("HSCAN", name, cursor, "MATCH", match, "COUNT", _SCANNED)
            found |= zip(flat[::2], flat[1::2], strict=True)
            if str(cursor) == "0":
                return found


def _place(field: str, recipient: str, channels: Sequence[str]) -> tuple[str, int] | None:
    """Return channel and contact of a field; None if it is of another recipient whose id begins in the same way."""
    for channel in channels:
        contact = field.removeprefix(f"{recipient}:{channel}").removeprefix(":")
        number = int(contact) if contact.isdecimal() else 0
        if field == outcome_field(recipient, channel, number):
            return split_label(channel)[0], number
    return None


def _exchanges(channel: str, contact: int, text: str) -> Iterator[Exchange]:
    for line in text.split("\n"):
        times, at, ending, calls = line.split("\t", 3)
        outcome, reason, detail = ending.split("|", 2)
        attempt = ExchangedAttempt(int(at), outcome, reason, detail, _decode_calls(calls))
        yield Exchange(channel, contact, int(times), attempt)
