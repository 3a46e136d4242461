"""Deliveries and their histories: enqueue, read, list, reschedule, cancel, retry, record delivery reports.

Guarantee: one function creates the history, the order key and the parcels (D-05). A refused delivery leaves nothing
behind. A repeated request gets the first response again (D-39).

Called by `delivery/`, which validates requests. `lua/delivery/functions/enqueue.lua` queues parcels for
`couriers.sending.runtime`.
"""

import hashlib
import secrets
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import count
from typing import Any

import msgspec
from msgspec import Struct

from core.deliveries.cancel import Canceller
from core.deliveries.channels import Channels
from core.deliveries.costs import Costs
from core.deliveries.delivery_reports import DeliveryReports, Exchanges, MessageReferences
from core.deliveries.histories.encoding import history_fields
from core.deliveries.histories.listing import ListFilter, Listing, SentMessage
from core.deliveries.histories.reader import HistoryReader
from core.deliveries.histories.recipient_search import RecipientSearch
from core.deliveries.of_person import DeliveriesOfPerson
from core.deliveries.retry import Accept, Retrier
from core.errors import (
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    QuotaExceeded,
    Refused,
    StoreError,
    StoreRefuses,
    malformed_cursor,
)
from core.model.clock import from_ms, in_ms, to_ms
from core.model.delivery import Accepted, DeliveryCancelled, NewDelivery, Quota, QuotaState, Repeat
from core.model.history import History
from core.model.history_key import HistoryKey, Id, code_of
from core.model.people import User
from core.model.states import DeliveryState, Status, Verdict
from core.redis.connection import Word
from core.redis.keys import KEYS
from core.redis.store import Argument, Store

EnqueueCall = tuple[HistoryKey, Sequence[Argument]]

# The name of a call, by which `lua/delivery/functions/enqueue.lua` recognises its repeat after a lost connection. A
# generated key is used once in a process, so the name of the process is enough; a key given by the caller may come
# twice, so these calls are numbered. The name is short because every history stores it.
_PROCESS = secrets.token_urlsafe(3)
_CALL_NUMBERS = count()

_RESERVED_MS = 24 * 3600 * 1000
_REPEAT_MS = 24 * 3600 * 1000

_REFUSALS: dict[str, Refused] = {
    "used": Conflict("HISTORY_KEY_USED", "This history key already has a delivery.", "history_key"),
    "foreign": Forbidden("HISTORY_KEY_FOREIGN", "This history key belongs to another tenant.", "history_key"),
    "payload": Conflict("IDEMPOTENCY_KEY_REUSED", "This Idempotency-Key was used with another request."),
}


class _StoredResult(Struct):
    fingerprint: str
    answer: tuple[str, str, str, str, int] | None = None


_decode_result = msgspec.json.Decoder(_StoredResult, strict=False).decode


class Deliveries:
    """One per process."""

    def __init__(self, store: Store, channels: Channels) -> None:
        self._store = store
        self.channels = channels
        self._reader = HistoryReader(store)
        self._listing = Listing(store, self._reader)
        self._canceller = Canceller(store, self._reader)
        self.recipients = RecipientSearch(store, self._reader)
        self.of_person = DeliveriesOfPerson(store, self._reader, self._listing, self.recipients, self._canceller)
        self.costs = Costs(store)
        self.exchanges = Exchanges(store, self._reader)
        self._retrier = Retrier(store, self._reader, channels)
        self._delivery_reports = DeliveryReports(store)
        self.shards = store.shards

    async def reserve(self, tenant: str, sender: Id, lane: str = "") -> HistoryKey:
        """Return a key for a delivery that does not exist yet (D-04). It is reserved for a day. It is in the shard of
        the delivery's lane; without one in the shard of the sender, so that a sender with a quota can use it.
        """
        while True:
            key = HistoryKey.new(sender, self.shards, self._store.shard_of(lane or str(sender)))
            if await self._store.run("reserve", key.shard, key.suffix, tenant, _RESERVED_MS):
                return key

    async def enqueue(self, delivery: NewDelivery, repeat: Repeat | None = None) -> Accepted:
        """Store the delivery and release it if it is due. One function call, however many recipients.

        Raises Conflict HISTORY_KEY_USED or IDEMPOTENCY_KEY_REUSED, Forbidden HISTORY_KEY_FOREIGN, Invalid
        HISTORY_KEY_MALFORMED, QuotaExceeded.
        """
        sizes = (await self.channels.current()).parcel_sizes
        while True:
            key, arguments = self._call(delivery, repeat, sizes)
            counted = await self._take_quota(delivery, key)
            if counted[:1] == ["quota"]:
                if repeat and (first := await self.first_result(delivery, repeat)):
                    return first
                return _accepted(key, counted, delivery.quota)
            reply = await self._store.run("enqueue", key.shard, *arguments)
            if counted and not _is_stored(key, reply):
                await self._return_quota(delivery, key)
                counted = []
            if not _clashed(delivery, reply):
                return _accepted(key, [*reply, *counted[1:]], delivery.quota)

    async def first_result(self, delivery: NewDelivery, repeat: Repeat) -> Accepted | None:
        """Return the result that the first request with this Idempotency-Key got; None if there was none. It is in the
        shard of the delivery: of its lane, of its sender if that had a quota, else of the key.
        """
        names = (repeat.key, str(delivery.sender.id), delivery.lane or "")
        key_shards = (delivery.history_key.shard,) if delivery.history_key else ()
        for shard in {*(self._store.shard_of(name) for name in names if name), *key_shards}:
            key = KEYS["idempotency"].at(shard, delivery.tenant, _repeat_hash(repeat.key))
            text = await self._store.command("GET", key)
            stored = _decode_result(text) if text else None
            if stored and stored.answer and stored.fingerprint == repeat.fingerprint:
                return _first_result(shard, *stored.answer)
        return None

    def shard_for(self, delivery: NewDelivery, repeat: Repeat | None) -> int | None:
        """Return the shard of a delivery: of its history key, of the delivery that it follows, or of its lane, else of
        its sender if that has a quota, else of its Idempotency-Key; None if any will do. A lane is strict because all
        of it stands in one shard.
        """
        if delivery.history_key:
            return delivery.history_key.shard
        if delivery.follows:
            return delivery.follows.key.shard
        by = delivery.lane or (str(delivery.sender.id) if delivery.quota else repeat.key if repeat else "")
        return self._store.shard_of(by) if by else None

    def _counts_elsewhere(self, delivery: NewDelivery, key: HistoryKey) -> bool:
        """Return whether the quota is counted in another shard than the delivery's, whose lane decides."""
        return bool(delivery.quota) and key.shard != self._store.shard_of(str(delivery.sender.id))

    async def _take_quota(self, delivery: NewDelivery, key: HistoryKey) -> list[str]:
        """Count a delivery in the shard of its sender before it is stored in that of its lane; return [] if its own
        shard counts it. A process that dies in between leaves it counted.
        """
        if not delivery.quota or not self._counts_elsewhere(delivery, key):
            return []
        return list(await self._store.run("take_quota", *self._quota_call(delivery, key)))

    async def _return_quota(self, delivery: NewDelivery, key: HistoryKey) -> None:
        await self._store.run("return_quota", *self._quota_call(delivery, key))

    def _quota_call(self, delivery: NewDelivery, key: HistoryKey) -> tuple[int, str, str, int, int]:
        """Return the shard and the arguments of `take_quota` and `return_quota`."""
        assert delivery.quota
        shard, quota = self._store.shard_of(str(delivery.sender.id)), delivery.quota
        return shard, delivery.tenant, key.suffix, quota.limit, in_ms(quota.period)

    async def enqueue_many(
        self, deliveries: Sequence[tuple[NewDelivery, Repeat | None]]
    ) -> list[Accepted | Refused | StoreRefuses]:
        """Enqueue each delivery independently, all in one batch; the results in their order. Raises StoreError if a
        result is unknown.
        """
        sizes = (await self.channels.current()).parcel_sizes
        calls: list[EnqueueCall | Refused] = []

        def script_calls() -> Iterator[tuple[int, Sequence[Argument]]]:
            for delivery, repeat in deliveries:
                call = self._call_or_refusal(delivery, repeat, sizes)
                calls.append(call)
                if not isinstance(call, Refused) and not self._counts_elsewhere(delivery, call[0]):
                    yield call[0].shard, call[1]

        replies = iter(await self._store.run_each("enqueue", script_calls()))
        return [
            call if isinstance(call, Refused) else await self._result(delivery, repeat, call[0], replies)
            for call, (delivery, repeat) in zip(calls, deliveries, strict=True)
        ]

    async def _result(
        self, delivery: NewDelivery, repeat: Repeat | None, key: HistoryKey, replies: Iterator[Any]
    ) -> Accepted | Refused | StoreRefuses:
        try:
            if self._counts_elsewhere(delivery, key):
                return await self.enqueue(delivery, repeat)
            reply = next(replies)
            if isinstance(reply, StoreError):
                raise reply
            if _clashed(delivery, reply):
                return await self.enqueue(delivery, repeat)
            return _accepted(key, reply, delivery.quota)
        except (Refused, StoreRefuses) as refusal:
            return refusal

    def _call_or_refusal(
        self, delivery: NewDelivery, repeat: Repeat | None, sizes: Mapping[str, int]
    ) -> EnqueueCall | Refused:
        try:
            return self._call(delivery, repeat, sizes)
        except Refused as refusal:
            return refusal

    def _call(self, delivery: NewDelivery, repeat: Repeat | None, sizes: Mapping[str, int]) -> EnqueueCall:
        """Return the key and the arguments of `lua/delivery/functions/enqueue.lua`. Raises Invalid
        HISTORY_KEY_MALFORMED."""
        if key := delivery.history_key:
            self._check_shard(delivery, key)
        else:
            key = HistoryKey.new(delivery.sender.id, self.shards, self.shard_for(delivery, repeat))
        call_name = f"{_PROCESS}{next(_CALL_NUMBERS):x}" if delivery.history_key else _PROCESS
        limit = None if self._counts_elsewhere(delivery, key) else delivery.quota
        return key, _enqueue_arguments(key, delivery, repeat, call_name, sizes, limit)

    def _check_shard(self, delivery: NewDelivery, key: HistoryKey) -> None:
        """Check a history key given by the caller. Raises Invalid HISTORY_KEY_MALFORMED if the key given by the caller
        is not in the delivery's shard.
        """
        if key.shard >= self.shards:
            raise Invalid("HISTORY_KEY_MALFORMED", "This history key names a shard that does not exist.", "history_key")
        if delivery.lane and key.shard != self._store.shard_of(delivery.lane):
            detail = "A delivery with a lane can use only a key that was reserved for this lane."
            raise Invalid("HISTORY_KEY_MALFORMED", detail, "history_key")
        if delivery.follows and key.shard != delivery.follows.key.shard:
            detail = "This key is in another shard than the delivery that is followed; leave it out."
            raise Invalid("HISTORY_KEY_MALFORMED", detail, "history_key")
        if delivery.quota and not delivery.lane and self._counts_elsewhere(delivery, key):
            detail = "A sender with a quota can use only the keys that it has reserved."
            raise Invalid("HISTORY_KEY_MALFORMED", detail, "history_key")

    async def read(self, key: HistoryKey, tenant: str, cursor: str | None = None, limit: int = 100) -> History:
        """Return the history with a page of recipients. Raises NotFound HISTORY_NOT_FOUND, Invalid CURSOR_MALFORMED."""
        return await self._reader.page(key, tenant, _position(cursor), limit)

    async def list(
        self,
        tenant: str,
        *,
        sender: str | None = None,
        tag: str | None = None,
        state: DeliveryState | None = None,
        verdict: Verdict | None = None,
        text: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        message: SentMessage | None = None,
        cursor: str | None = None,
        limit: int = 100,
    ) -> tuple[list[History], str | None]:
        """Return a page of summaries without recipients, newest first, and the cursor of the next page. Raises Invalid
        CURSOR_MALFORMED.
        """
        return await self._listing.page(
            tenant, ListFilter(sender, tag, state, verdict, text, since, until, message), cursor, limit
        )

    async def reschedule(
        self, key: HistoryKey, tenant: str, deliver_at: datetime, moved_from: datetime | None = None
    ) -> Accepted:
        """Move a delivery that has not been released. `moved_from`: the requested time, if quiet hours have moved it.
        Raises NotFound HISTORY_NOT_FOUND, Conflict ALREADY_RELEASED, Invalid EXPIRES_BEFORE_DUE, UNTIL_BEFORE_DUE.
        """
        if key.shard >= self.shards:
            raise NotFound("HISTORY_NOT_FOUND", "There is no such delivery.")
        asked = to_ms(moved_from) if moved_from else 0
        reply = await self._store.run("reschedule", key.shard, key.suffix, tenant, to_ms(deliver_at), asked)
        if reply[0] == "missing":
            raise NotFound("HISTORY_NOT_FOUND", "There is no such delivery.")
        if reply[0] == "released" and reply[1] == DeliveryState.CANCELLED:
            raise Conflict("CANCELLED", "The delivery was cancelled.")
        if reply[0] == "released":
            raise Conflict("ALREADY_RELEASED", f"The delivery is {reply[1]}; only a scheduled one can be moved.")
        if reply[0] == "closes":
            raise Invalid("UNTIL_BEFORE_DUE", "The question would be closed before the delivery is due.", "deliver_at")
        if reply[0] == "expires":
            raise Invalid("EXPIRES_BEFORE_DUE", "The delivery would expire before it is due.", "deliver_at")
        return Accepted(key, DeliveryState(reply[1]), from_ms(reply[2]), _optional_time(reply[4]), int(reply[3]))

    async def cancel(self, key: HistoryKey, tenant: str, recipients: Sequence[str] = ()) -> DeliveryCancelled:
        """Cancel a delivery, whole or for chosen recipients, as far as it has not been sent (D-42). Raises NotFound
        HISTORY_NOT_FOUND, RECIPIENT_NOT_FOUND.
        """
        return await self._canceller.cancel(key, tenant, recipients)

    async def leave_out(
        self, tenant: str, person: User, channels: Collection[str] | None, before: int, child: str = ""
    ) -> int:
        """Skip what has not been sent to a person over these channels (`Canceller.leave_out`)."""
        return await self._canceller.leave_out(tenant, person, channels, before, child)

    async def leave_out_contacts(self, tenant: str, contacts: Mapping[str, Collection[str]], before: int) -> int:
        """Cancel what has not been sent to contacts that people have no more (`Canceller.leave_out_contacts`)."""
        return await self._canceller.leave_out_contacts(tenant, contacts, before)

    async def cancel_by(self, tenant: str, selector: str, value: str) -> int:
        """Cancel all unfinished deliveries by `sender`, `user` (a recipient), `lane`, `kind_prefix` or `tag`; return
        how many. Raises Invalid UNKNOWN_FIELD.
        """
        return await self._canceller.cancel_by(tenant, selector, value)

    async def retry(
        self,
        key: HistoryKey,
        tenant: str,
        statuses: Sequence[Status],
        recipients: Sequence[str] = (),
        accept: Accept | None = None,
    ) -> int:
        """Queue the entries with one of these statuses again (D-40), of all recipients or the given ones, without
        those that `accept` refuses; return how many. Raises NotFound, Conflict, Invalid.
        """
        return await self._retrier.retry(key, tenant, statuses, recipients, accept)

    async def record_report(self, token: str, status: Status, reference: str) -> bool:
        """Record a provider's delivery report; return whether the history changed. Raises Forbidden
        RECEIPT_SECRET_WRONG, NotFound HISTORY_NOT_FOUND.
        """
        return await self._delivery_reports.record(token, status, reference)

    async def record_report_by_reference(self, channel: str, account: str, reference: str, status: Status) -> bool:
        """Do the same for a report that has only the provider's id. Raises NotFound REFERENCE_UNKNOWN."""
        return await MessageReferences(self._store, self._delivery_reports, channel, account).report(reference, status)


def _enqueue_arguments(
    key: HistoryKey,
    delivery: NewDelivery,
    repeat: Repeat | None,
    call_name: str,
    sizes: Mapping[str, int],
    quota: Quota | None,
) -> Sequence[Argument]:
    due = to_ms(delivery.deliver_at) if delivery.deliver_at else 0
    expires = to_ms(delivery.expires_at) if delivery.expires_at else 0
    repeat_key = _repeat_hash(repeat.key) if repeat else ""
    fingerprint = repeat.fingerprint if repeat else ""
    asked = to_ms(delivery.moved_from) if delivery.moved_from else 0
    held_to: list[Word] = [quota.limit, in_ms(quota.period)] if quota else []
    rules = due, expires, asked, held_to
    idempotency = repeat_key, fingerprint, _REPEAT_MS
    fields = history_fields(delivery, sizes)
    question: list[Word] = [code_of(key), delivery.question.until] if delivery.question else []
    follows: list[Word] = [delivery.follows.key.suffix, delivery.follows.of] if delivery.follows else []
    lists = fields, question, follows
    return key.suffix, delivery.tenant, call_name, *rules, *idempotency, len(delivery.recipients), *lists


def _clashed(delivery: NewDelivery, reply: list[str]) -> bool:
    """Return whether another process generated the same key in the same nanosecond. Then another key is generated."""
    return reply[0] == "used" and delivery.history_key is None


def _is_stored(key: HistoryKey, reply: list[str]) -> bool:
    """Return whether this call, or an earlier try of it, has stored the delivery; not a request before it."""
    return reply[0] in ("accepted", "repeated") and reply[1] == key.suffix


def _accepted(key: HistoryKey, reply: list[str], quota: Quota | None) -> Accepted:
    if reply[0] in _REFUSALS:
        raise _REFUSALS[reply[0]]
    if reply[0] == "quota" and quota:
        raise QuotaExceeded(quota.limit, quota.period, timedelta(milliseconds=int(reply[1])))
    kind, suffix, state, due, asked, recipients, *used = reply
    if kind == "repeated":
        key = HistoryKey.of(key.shard, suffix)
    result = key, DeliveryState(state), from_ms(due), _optional_time(asked), int(recipients), kind == "repeated"
    return Accepted(*result, _quota_state(quota, *used) if quota and used else None)


def _quota_state(quota: Quota, used: str, resets_in_ms: str) -> QuotaState:
    return QuotaState(int(used), quota.limit, timedelta(milliseconds=int(resets_in_ms)), quota.period)


def _optional_time(ms: str) -> datetime | None:
    return from_ms(ms) if ms else None


def _position(cursor: str | None) -> int:
    if cursor is None:
        return 0
    if not cursor.isascii() or not cursor.isdigit() or len(cursor) > 9:
        raise malformed_cursor()
    return int(cursor)


def _repeat_hash(key: str) -> str:
    """Return an Idempotency-Key as a part of a Redis key: it may contain anything."""
    return hashlib.blake2b(key.encode(), digest_size=16).hexdigest()


def _first_result(shard: int, suffix: str, state: str, due: str, asked: str, recipients: int) -> Accepted:
    key = HistoryKey.of(shard, suffix)
    return Accepted(key, DeliveryState(state), from_ms(due), _optional_time(asked), recipients, True)
