"""Deliveries and what became of them: enqueue, read, list, reschedule, cancel, retry.

Guarantee: history, order and parcels come into being in one script (D-05); what is refused leaves nothing behind; a
repeat is answered like the first call (D-39).

Before: `delivery/` (checks what came over HTTP). After: `lua/delivery/enqueue.lua`, which puts parcels in the queue for
`core.courier.runtime`.
"""

import hashlib
import secrets
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import count
from typing import Any

from core.errors import Conflict, Forbidden, Invalid, NotFound, Refused, StoreError, StoreFull, malformed_cursor
from core.history.cancel import Canceller
from core.history.channels import Channels
from core.history.delivery_reports import DeliveryReports
from core.history.listing import Listing
from core.history.parcels import fields_of
from core.history.reader import HistoryReader
from core.history.retry import Retrier
from core.model.clock import from_ms, to_ms
from core.model.delivery import Accepted, Cancelled, NewDelivery, Repeat
from core.model.history import History
from core.model.history_key import HistoryKey, Id
from core.model.states import DeliveryState, Status
from core.redis.store import Argument, Store

Call = tuple[HistoryKey, Sequence[Argument]]

# By this name a call knows its repeat. A key of our own is met once in a process, whose name is then enough; one that
# was given may come twice, so its calls are counted. It is short because every delivery keeps it.
_PROCESS = secrets.token_urlsafe(3)
_CALLS = count()

_RESERVED_MS = 24 * 3600 * 1000
_REPEAT_MS = 24 * 3600 * 1000

# Calling the enumeration costs ten times as much.
_STATES: Mapping[str, DeliveryState] = {state.value: state for state in DeliveryState}

_REFUSALS: dict[str, Refused] = {
    "used": Conflict("HISTORY_KEY_USED", "This history key already has a delivery.", "history_key"),
    "foreign": Forbidden("HISTORY_KEY_FOREIGN", "This history key belongs to somebody else.", "history_key"),
    "payload": Conflict("IDEMPOTENCY_KEY_REUSED", "This Idempotency-Key was used with another request."),
}


class Deliveries:
    """One per process."""

    def __init__(self, store: Store, channels: Channels) -> None:
        self._store = store
        self._channels = channels
        self._reader = HistoryReader(store)
        self._listing = Listing(store, self._reader)
        self._canceller = Canceller(store, self._reader)
        self._retrier = Retrier(store, self._reader, channels)
        self._receipts = DeliveryReports(store)
        self.shards = store.shards

    async def reserve(self, tenant: str, sender: Id) -> HistoryKey:
        """A key before there is a delivery (D-04). It stays reserved for a day."""
        while True:
            key = HistoryKey.new(sender, self.shards)
            if await self._store.run("reserve", key.shard, key.suffix, tenant, _RESERVED_MS):
                return key

    async def enqueue(self, order: NewDelivery, repeat: Repeat | None = None) -> Accepted:
        """Keep the delivery and, when it is due, release it. One script, however many recipients.

        Raises Conflict HISTORY_KEY_USED or IDEMPOTENCY_KEY_REUSED, Forbidden HISTORY_KEY_FOREIGN.
        """
        sizes = (self._channels.recall() or await self._channels.read()).parcel_sizes
        while True:
            key, arguments = self._call(order, repeat, sizes)
            reply = await self._store.run("enqueue", key.shard, *arguments)
            if not _clashed(order, reply):
                return _accepted(key, reply)

    async def enqueue_many(
        self, orders: Sequence[tuple[NewDelivery, Repeat | None]]
    ) -> list[Accepted | Refused | StoreFull]:
        """Each for itself, all under way at once; the answers in order. Raises StoreError when one is not known."""
        sizes = (self._channels.recall() or await self._channels.read()).parcel_sizes
        calls: list[Call | Refused] = []

        def asked() -> Iterator[tuple[int, Sequence[Argument]]]:
            for order, repeat in orders:
                call = self._call_or_refusal(order, repeat, sizes)
                calls.append(call)
                if not isinstance(call, Refused):
                    yield call[0].shard, call[1]

        replies = iter(await self._store.run_each("enqueue", asked()))
        return [
            call if isinstance(call, Refused) else await self._answer(order, repeat, call[0], next(replies))
            for call, (order, repeat) in zip(calls, orders, strict=True)
        ]

    async def _answer(
        self, order: NewDelivery, repeat: Repeat | None, key: HistoryKey, reply: Any
    ) -> Accepted | Refused | StoreFull:
        if isinstance(reply, StoreFull):
            return reply
        if isinstance(reply, StoreError):
            raise reply
        try:
            return await self.enqueue(order, repeat) if _clashed(order, reply) else _accepted(key, reply)
        except Refused as refusal:
            return refusal

    def _call_or_refusal(self, order: NewDelivery, repeat: Repeat | None, sizes: Mapping[str, int]) -> Call | Refused:
        try:
            return self._call(order, repeat, sizes)
        except Refused as refusal:
            return refusal

    def _call(self, order: NewDelivery, repeat: Repeat | None, sizes: Mapping[str, int]) -> Call:
        """The key and the arguments of `lua/delivery/enqueue.lua`, with a name of its own. Raises Invalid."""
        key = order.history_key or HistoryKey.new(order.sender.id, self.shards, repeat.key if repeat else "")
        if key.shard >= self.shards:
            raise Invalid("HISTORY_KEY_MALFORMED", "This history key names a shard that does not exist.", "history_key")
        name = f"{_PROCESS}{next(_CALLS):x}" if order.history_key else _PROCESS
        return key, _enqueue_arguments(key, order, repeat, name, sizes)

    async def read(self, key: HistoryKey, tenant: str, cursor: str | None = None, limit: int = 100) -> History:
        """The history with a page of recipients. Raises NotFound HISTORY_NOT_FOUND, Invalid CURSOR_MALFORMED."""
        return await self._reader.page(key, tenant, _position(cursor), limit)

    async def list(
        self,
        tenant: str,
        *,
        sender: str | None = None,
        state: DeliveryState | None = None,
        since: datetime | None = None,
        cursor: str | None = None,
        limit: int = 100,
    ) -> tuple[list[History], str | None]:
        """Newest first, without recipients, and the cursor of what follows."""
        return await self._listing.page(tenant, sender, state, since, cursor, limit)

    async def reschedule(self, key: HistoryKey, tenant: str, deliver_at: datetime) -> Accepted:
        """Move a delivery that has not been released. Raises NotFound, Conflict ALREADY_RELEASED, Invalid
        EXPIRES_BEFORE_DUE.
        """
        if key.shard >= self.shards:
            raise NotFound("HISTORY_NOT_FOUND", "There is no such delivery.")
        reply = await self._store.run("reschedule", key.shard, key.suffix, tenant, to_ms(deliver_at))
        if reply[0] == "missing":
            raise NotFound("HISTORY_NOT_FOUND", "There is no such delivery.")
        if reply[0] == "released":
            raise Conflict("ALREADY_RELEASED", f"The delivery is {reply[1]}; only a scheduled one can be moved.")
        if reply[0] == "expires":
            raise Invalid("EXPIRES_BEFORE_DUE", "The delivery would expire before it is due.", "deliver_at")
        due = from_ms(reply[2])
        asked = deliver_at if reply[1] != DeliveryState.SCHEDULED else None
        return Accepted(key, DeliveryState(reply[1]), due, asked, int(reply[3]))

    async def cancel(self, key: HistoryKey, tenant: str, recipients: Sequence[str] = ()) -> Cancelled:
        """End a delivery, whole or for chosen recipients, as far as it has not been sent (D-42)."""
        return await self._canceller.cancel(key, tenant, recipients)

    async def cancel_by(self, tenant: str, field: str, value: str) -> int:
        """End all unfinished deliveries of a sender, to a user, of a lane, kind prefix or tag. How many there were."""
        return await self._canceller.cancel_by(tenant, field, value)

    async def retry(self, key: HistoryKey, tenant: str, statuses: Sequence[Status]) -> int:
        """A new attempt for these outcomes (D-40). How many were queued again."""
        return await self._retrier.retry(key, tenant, statuses)

    async def receive(self, receipt: str, report: Status, reference: str) -> bool:
        """A provider's report on a message. Whether the history changed. Raises Forbidden RECEIPT_SECRET_WRONG."""
        return await self._receipts.receive(receipt, report, reference)


def _enqueue_arguments(
    key: HistoryKey, order: NewDelivery, repeat: Repeat | None, request: str, sizes: Mapping[str, int]
) -> Sequence[Argument]:
    due = to_ms(order.deliver_at) if order.deliver_at else 0
    expires = to_ms(order.expires_at) if order.expires_at else 0
    name = hashlib.blake2b(repeat.key.encode(), digest_size=16).hexdigest() if repeat else ""
    fingerprint = repeat.fingerprint if repeat else ""
    people, fields = len(order.recipients), fields_of(order, sizes)
    return key.suffix, order.tenant, request, due, expires, name, fingerprint, _REPEAT_MS, people, fields


def _clashed(order: NewDelivery, reply: list[str]) -> bool:
    """The key that we made ourselves was somebody else's in the same nanosecond: another one is made."""
    return reply[0] == "used" and order.history_key is None


def _accepted(key: HistoryKey, reply: list[str]) -> Accepted:
    if reply[0] in _REFUSALS:
        raise _REFUSALS[reply[0]]
    kind, suffix, state, due, asked, recipients = reply
    if kind == "repeated":
        key = HistoryKey.of(key.shard, suffix)
    moved = from_ms(asked) if asked else None
    return Accepted(key, _STATES[state], from_ms(due), moved, int(recipients), kind == "repeated")


def _position(cursor: str | None) -> int:
    if cursor is None:
        return 0
    if not cursor.isascii() or not cursor.isdigit() or len(cursor) > 9:
        raise malformed_cursor()
    return int(cursor)
