"""What goes into the house and what it answers: frozen values, no Redis, no HTTP.

They are structs of msgspec: one is made for each call and each person, and a frozen dataclass costs ten times as much.

Before: `delivery/` (checks what came over HTTP). After: `core.history.deliveries`, which keeps them.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

from msgspec import Struct

from core.model.history_key import HistoryKey, Id
from core.model.states import DeliveryState


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


class NewDelivery(Struct, frozen=True):
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


class Cancelled(Struct, frozen=True):
    """`cancelled`: recipients who will not get it any more; `already_sent`: whom it was sent to in some channel before
    that.
    """

    cancelled: int
    already_sent: Sequence[Id]
    in_flight: Sequence[Id] = ()  # an attempt was under way and has not told its end in time
