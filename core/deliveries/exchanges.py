"""The exchanges with providers about messages: what was called, and what the provider said (D-48).

`lua/delivery/modules/exchanges.lua` keeps them.
"""

import re
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec
from msgspec import Struct

from core.deliveries.histories.parcels import outcome_field, split_label
from core.deliveries.histories.projection import channels_of
from core.deliveries.histories.reader import HistoryReader
from core.model.history_key import HistoryKey
from core.redis.constants import DAY_MS
from core.redis.keys import KEYS
from core.redis.store import Store


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


KEPT_MS = 7 * DAY_MS
_PAGE = 1000
_GLOB = re.compile(r"[*?\[\]\\]")
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
        since = int(time.time() * 1000) + self._store.clock_offset_ms - KEPT_MS
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
            cursor, flat = await self._store.command("HSCAN", name, cursor, "MATCH", match, "COUNT", _PAGE)
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
