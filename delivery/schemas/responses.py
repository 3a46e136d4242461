"""The types of all responses. The encoder and the OpenAPI document use them."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import UNSET, Struct, UnsetType, json

from core.deliveries.histories import recipient_search
from core.deliveries.histories.recipient_search import why_not_reached
from core.model import delivery, history
from core.model.history_key import HistoryKey, Id
from core.model.quota import QuotaState
from core.model.states import DeliveryState, Status, Verdict
from delivery.schemas.fields.content import ContentResponse
from delivery.schemas.fields.durations import write_duration
from delivery.schemas.fields.timestamps import write_optional_time, write_time

encode = json.Encoder().encode


class HistoryKeyResponse(Struct):
    """A history key for a later delivery."""

    history_key: str
    id: str

    @classmethod
    def of(cls, key: HistoryKey) -> "HistoryKeyResponse":
        return cls(str(key), key.id)


class Accepted(Struct):
    """A delivery was accepted. `moved_from`: the requested time, if `deliver_at` differs from it."""

    id: str
    history_key: str
    state: DeliveryState
    deliver_at: str
    moved_from: str | None
    recipients: int

    @classmethod
    def of(cls, accepted: delivery.Accepted) -> "Accepted":
        key, moved_from = accepted.key, write_optional_time(accepted.moved_from)
        return cls(key.id, str(key), accepted.state, write_time(accepted.deliver_at), moved_from, accepted.recipients)


class LineAccepted(Struct):
    """One line of a bulk request was accepted. `replayed`: the line is a repeat, and this is the first response."""

    line: int
    status: int
    replayed: bool
    id: str
    history_key: str
    state: DeliveryState
    deliver_at: str
    moved_from: str | None
    recipients: int

    @classmethod
    def of(cls, number: int, accepted: delivery.Accepted) -> "LineAccepted":
        key, moved_from = accepted.key, write_optional_time(accepted.moved_from)
        at, state, recipients = write_time(accepted.deliver_at), accepted.state, accepted.recipients
        return cls(number, 202, accepted.repeated, key.id, str(key), state, at, moved_from, recipients)


class Outcome(Struct):
    """The outcome for one recipient in one channel. Before the first attempt there is only the status.

    `not_shown`: what the channel could not show of the delivery; absent if it showed everything.
    """

    status: Status
    reason: str | UnsetType | None = UNSET
    reference: str | UnsetType | None = UNSET
    attempts: int | UnsetType = UNSET
    at: str | UnsetType | None = UNSET
    not_shown: list[str] | UnsetType = UNSET

    @classmethod
    def of(cls, record: history.OutcomeRecord) -> "Outcome":
        if not record.version and record.at is None:
            return cls(record.status, record.reason or UNSET)
        known = record.status, record.reason, record.reference, record.attempts, write_optional_time(record.at)
        return cls(*known, list(record.not_shown) or UNSET)


class RecipientHistory(Struct):
    """One recipient with the outcome in every channel. `received_in`: the channels that reached the recipient."""

    id: Id
    name: str | None
    origin: list[str]
    received_in: list[str]
    outcomes: dict[str, Outcome]

    @classmethod
    def of(cls, record: history.RecipientRecord) -> "RecipientHistory":
        outcomes = {channel: Outcome.of(outcome) for channel, outcome in record.outcomes.items()}
        return cls(record.id, record.name, list(record.origin), list(record.received_in), outcomes)


class ListedRecipient(RecipientHistory):
    """A recipient. `why`: why it was not reached: a reason, a status, or `waiting`; null if it was."""

    why: str | None

    @classmethod
    def of(cls, record: history.RecipientRecord) -> "ListedRecipient":
        outcomes = {channel: Outcome.of(outcome) for channel, outcome in record.outcomes.items()}
        known = record.id, record.name, list(record.origin), list(record.received_in), outcomes
        return cls(*known, why_not_reached(record))


class RecipientPage(Struct):
    """A page of recipients, those not reached first. It may be short although there is a `next` one."""

    recipients: list[ListedRecipient]
    next: str | None

    @classmethod
    def of(cls, page: recipient_search.RecipientPage) -> "RecipientPage":
        return cls([ListedRecipient.of(one) for one in page.recipients], page.next)


class Reasons(Struct):
    """Why people were not reached → how many, the most frequent first. `waiting`: a channel may still reach them."""

    not_reached: int
    reasons: dict[str, int]


class DeliverySummary(Struct, kw_only=True):
    """A delivery without its recipients. `channels`: channel → `state`, and the number of outcomes per status.
    `content`: absent if the delivery has only a text.
    """

    id: str
    history_key: str
    sender: Mapping[str, Any]
    text: str
    origin: str
    state: DeliveryState
    version: int
    created_at: str
    deliver_at: str
    moved_from: str | None
    expires_at: str | None
    released_at: str | None
    finished_at: str | None
    verdict: Verdict
    counts: Mapping[str, int]
    channels: dict[str, dict[str, str | int]]
    reported: int
    kind: str
    tags: list[str]
    lane: str | None
    priority: int
    strategy: delivery.Strategy
    wait: str | None
    content: ContentResponse | UnsetType = UNSET

    @classmethod
    def of(cls, history: history.History) -> "DeliverySummary":
        return cls(**_summary(history))


class HistoryResponse(DeliverySummary, kw_only=True):
    """A delivery with one page of its recipients. `next`: the cursor of the next page."""

    recipients: list[RecipientHistory]
    next: str | None

    @classmethod
    def of(cls, history: history.History) -> "HistoryResponse":
        recipients = [RecipientHistory.of(one) for one in history.recipients]
        return cls(**_summary(history), recipients=recipients, next=history.next)


_COPIED = (
    "sender", "text", "origin", "state", "version", "verdict", "counts", "reported", "kind", "lane", "priority",
    "strategy",
)  # fmt: skip
_TIMES = ("created_at", "deliver_at", "moved_from", "expires_at", "released_at", "finished_at")


def _summary(history: history.History) -> dict[str, Any]:
    copied = {name: getattr(history, name) for name in _COPIED}
    times = {name: write_optional_time(getattr(history, name)) for name in _TIMES}
    channels = {name: {"state": one.state, **one.counts} for name, one in history.channels.items()}
    further = {"id": history.key.id, "history_key": str(history.key), "tags": list(history.tags), "channels": channels}
    wait = None if history.wait is None else write_duration(history.wait)
    content = {} if history.content is None else {"content": ContentResponse.of(history.content)}
    return copied | times | further | {"wait": wait} | content


class DeliveryPage(Struct):
    """A page of deliveries, newest first. `next`: the cursor of the next page."""

    deliveries: list[DeliverySummary]
    next: str | None

    @classmethod
    def of(cls, histories: Iterable[history.History], cursor: str | None) -> "DeliveryPage":
        return cls([DeliverySummary.of(one) for one in histories], cursor)


class Cancelled(Struct):
    """`cancelled`: the number of cancelled recipients; `already_sent`: recipients it had been sent to before."""

    cancelled: int
    already_sent: list[Id]
    in_flight: list[Id]

    @classmethod
    def of(cls, cancelled: delivery.Cancelled) -> "Cancelled":
        return cls(cancelled.cancelled, list(cancelled.already_sent), list(cancelled.in_flight))


class CancelledMany(Struct):
    """The number of deliveries that this request cancelled. If a request was cut off, a repeat cancels the rest and
    counts only that.
    """

    cancelled: int


class Retried(Struct):
    """The number of queued retries: pairs of recipient and channel."""

    queued: int


class QuotaResponse(Struct):
    """`used`: deliveries that count towards the quota now. `limit` is null without a quota. `resets_in`: seconds until
    the first of them no longer counts, 0 if there is none.
    """

    used: int
    limit: int | None
    resets_in: int

    @classmethod
    def of(cls, state: QuotaState) -> "QuotaResponse":
        return cls(state.used, state.limit, math.ceil(state.resets_in.total_seconds()))


class TrackResponse(Struct):
    """The history at the end of the wait. `history` is null while the key has no delivery."""

    history: HistoryResponse | None
    timed_out: bool


class OutcomeChanged(Struct):
    """Event of a stream: the outcome for one recipient in one channel changed."""

    version: int
    state: DeliveryState
    recipient: Id
    channel: str
    outcome: Outcome


class StateChanged(Struct):
    """Event of a stream: the delivery has a new time (`state`), or has ended (`finished`)."""

    version: int
    state: DeliveryState
    deliver_at: str | None


def change_data(change: history.Change) -> OutcomeChanged | StateChanged:
    """Return the data of the event for a change."""
    if change.recipient is None or change.channel is None or change.outcome is None:
        return StateChanged(change.version, change.state, write_optional_time(change.deliver_at))
    outcome = Outcome.of(change.outcome)
    return OutcomeChanged(change.version, change.state, change.recipient, change.channel, outcome)
