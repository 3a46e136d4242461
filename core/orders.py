"""What goes into the house and what it answers: frozen values, no Redis, no HTTP.

They are structs of msgspec: one is made for each call and each person, and a frozen dataclass costs ten times as much.

Before: `delivery/` (checks what came over HTTP). After: `core.histories`, which keeps them.
"""

import re
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote, unquote
from zlib import crc32

from msgspec import Struct

from core.errors import Invalid
from core.words import DeliveryState, Status, Verdict

Id = int | str

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)

_KEY = re.compile(r"history:\{(\d{1,5})\}:(.+):(\d{19})", re.DOTALL)
_PUBLIC = re.compile(r"(\d{1,5})\.(.+)\.(\d{19})", re.DOTALL)


class HistoryKey(Struct, frozen=True, gc=False):
    """Names a delivery: `history:{shard}:<sender>:<unix ns>` in Redis, `<shard>.<sender>.<unix ns>` in URLs."""

    shard: int
    sender: str
    ns: int

    def __str__(self) -> str:
        return f"history:{{{self.shard}}}:{self.sender}:{self.ns}"

    @property
    def suffix(self) -> str:
        """What the `history:` and the `delivery:` key have in common, without the shard."""
        return f"{self.sender}:{self.ns}"

    @property
    def id(self) -> str:
        """URL-safe and opaque for callers."""
        return f"{self.shard}.{_escaped(self.sender)}.{self.ns}"

    @classmethod
    def of(cls, shard: int, suffix: str) -> "HistoryKey":
        """The key that has this `suffix`: `<sender>:<unix ns>`, where the sender may hold colons of his own. It is
        taken as the scripts tell it and not checked; what came from outside goes through `parse`.
        """
        sender, _, ns = suffix.rpartition(":")
        return cls(shard, sender, int(ns))

    @classmethod
    def parse(cls, text: str) -> "HistoryKey":
        """Read either form. Raises `Invalid` HISTORY_KEY_MALFORMED."""
        if found := _KEY.fullmatch(text):
            return cls(int(found[1]), found[2], int(found[3]))
        if found := _PUBLIC.fullmatch(text):
            return cls(int(found[1]), unquote(found[2].replace("~", "%")), int(found[3]))
        raise Invalid(
            "HISTORY_KEY_MALFORMED", "A history key looks like history:{0}:42:1763712000000000000.", "history_key"
        )

    @classmethod
    def new(cls, sender: Id, shards: int, spread: str = "") -> "HistoryKey":
        """A key for a delivery of `sender` from now. The shard follows `spread` (an Idempotency-Key) where one is
        given.
        """
        ns = _NANOSECONDS.fresh()
        shard = crc32(spread.encode()) % shards if spread else ns // 1000 % shards
        return cls(shard, str(sender), ns)


def _escaped(sender: str) -> str:
    """In URLs, and again quoted by whoever builds one: `~` stands for `%`, which a second quoting would change."""
    if sender.isascii() and sender.isalnum():
        return sender
    return quote(sender, safe="").replace("~", "%7E").replace("%", "~")


class _Nanoseconds:
    """Unix nanoseconds, strictly growing in this process; `lua/enqueue.lua` refuses the rare clash between two."""

    last = 0

    def fresh(self) -> int:
        self.last = max(time.time_ns(), self.last + 1)
        return self.last


_NANOSECONDS = _Nanoseconds()


class Sender(Struct, frozen=True, gc=False, omit_defaults=True):
    """Who sends."""

    id: Id
    name: str | None = None
    role: str | None = None


class Recipient(Struct, frozen=True):
    """One person. `contacts`: channel → addresses in the order they were given; no channel with an empty list."""

    id: Id
    name: str | None = None
    contacts: Mapping[str, Sequence[str]] = {}
    origin: Sequence[str] = ()


class Order(Struct, frozen=True):
    """One text for many people, each of them once. Times are aware; `deliver_at` None means now."""

    tenant: str
    sender: Sender
    text: str
    recipients: Sequence[Recipient]
    channels: Sequence[str]
    origin: str = "api"
    deliver_at: datetime | None = None
    expires_at: datetime | None = None
    history_key: HistoryKey | None = None
    lane: str | None = None
    priority: int = 5
    kind: str = "message"
    tags: Sequence[str] = ()


class Repeat(Struct, frozen=True, gc=False):
    """An Idempotency-Key and the fingerprint of the request it came with."""

    key: str
    fingerprint: str


class Accepted(Struct, frozen=True):
    """What a caller is told of an order. `repeated`: this is the first answer, given again."""

    key: HistoryKey
    state: DeliveryState
    deliver_at: datetime
    moved_from: datetime | None
    recipients: int
    repeated: bool = False


class OutcomeRecord(Struct, frozen=True):
    """What became of one recipient in one channel. `version`: the history's version that brought it, 0 for what was
    never written.
    """

    status: Status
    reason: str | None = None
    reference: str | None = None
    attempts: int = 0
    at: datetime | None = None
    version: int = 0


class RecipientRecord(Struct, frozen=True):
    """What became of one recipient. `received_in`: the channels that reached him."""

    id: Id
    name: str | None
    origin: Sequence[str]
    received_in: Sequence[str]
    outcomes: Mapping[str, OutcomeRecord]


class ChannelRecord(Struct, frozen=True):
    """`state`: "pending" or "reported"; `counts`: status → how many, without zeros."""

    state: str
    counts: Mapping[Status, int]


class History(Struct, frozen=True):
    """Who, what, whence, to whom, who got it and how. `recipients` is one page of them; `next` the cursor of the
    following page.
    """

    key: HistoryKey
    tenant: str
    sender: Mapping[str, Any]
    text: str
    origin: str
    state: DeliveryState
    version: int
    created_at: datetime
    deliver_at: datetime
    released_at: datetime | None
    finished_at: datetime | None
    expires_at: datetime | None
    moved_from: datetime | None
    verdict: Verdict
    counts: Mapping[str, int]  # recipients, reached, then one for each status that can be counted
    channels: Mapping[str, ChannelRecord]
    kind: str
    tags: Sequence[str]
    lane: str | None
    priority: int
    reported: int  # how many channels have reported
    recipients: Sequence[RecipientRecord] = ()
    next: str | None = None


class Cancelled(Struct, frozen=True):
    """`cancelled`: recipients who will not get it any more; `already_sent`: whom it was sent to in some channel before
    that.
    """

    cancelled: int
    already_sent: Sequence[Id]
    in_flight: Sequence[Id] = ()  # an attempt was under way and has not told its end in time


class Change(Struct, frozen=True):
    """One outcome that changed, or the end. `version` counts the changes of a history from 1."""

    version: int
    recipient: Id | None
    channel: str | None
    outcome: OutcomeRecord | None
    state: DeliveryState


def moment(ms: int | float | str) -> datetime:
    """Unix milliseconds as an aware time."""
    return _EPOCH + int(ms) * _MILLISECOND


def unix_ms(at: datetime) -> int:
    """An aware time as Unix milliseconds."""
    return round(at.timestamp() * 1000)
