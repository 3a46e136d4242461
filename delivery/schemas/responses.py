"""What is told: answers, typed once. Encoding and the OpenAPI document come from these types."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import UNSET, Struct, UnsetType, json

from core.model import delivery, history
from core.model.history_key import HistoryKey, Id
from core.model.states import DeliveryState, Status, Verdict
from delivery.schemas.timestamps import write_optional_time, write_time

encode = json.Encoder().encode


class HistoryKeyGiven(Struct):
    """A key that a delivery may use later."""

    history_key: str
    id: str

    @classmethod
    def of(cls, key: HistoryKey) -> "HistoryKeyGiven":
        return cls(str(key), key.id)


class Accepted(Struct):
    """An order was taken. `moved_from`: the time that was asked for, where it is not the time it got."""

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
    """One line of a bulk was taken. `replayed`: it had been taken before, and this is the answer of that time."""

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
    def of(cls, number: int, one: delivery.Accepted) -> "LineAccepted":
        key, at, moved_from = one.key, write_time(one.deliver_at), write_optional_time(one.moved_from)
        return cls(number, 202, one.repeated, key.id, str(key), one.state, at, moved_from, one.recipients)


class Outcome(Struct):
    """What became of one recipient in one channel. What was never attempted has only its status."""

    status: Status
    reason: str | UnsetType | None = UNSET
    reference: str | UnsetType | None = UNSET
    attempts: int | UnsetType = UNSET
    at: str | UnsetType | None = UNSET

    @classmethod
    def of(cls, record: history.OutcomeRecord) -> "Outcome":
        if not record.version and record.at is None:
            return cls(record.status)
        return cls(record.status, record.reason, record.reference, record.attempts, write_optional_time(record.at))


class RecipientTold(Struct):
    """One person and who got it how. `received_in`: the channels that reached him."""

    id: Id
    name: str | None
    origin: list[str]
    received_in: list[str]
    outcomes: dict[str, Outcome]

    @classmethod
    def of(cls, record: history.RecipientRecord) -> "RecipientTold":
        outcomes = {channel: Outcome.of(outcome) for channel, outcome in record.outcomes.items()}
        return cls(record.id, record.name, list(record.origin), list(record.received_in), outcomes)


class Summary(Struct, kw_only=True):
    """A delivery without its recipients. `channels`: channel → `state`, and how many of each status."""

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

    @classmethod
    def of(cls, history: history.History) -> "Summary":
        return cls(**_summary(history))


class HistoryTold(Summary, kw_only=True):
    """Who sent what, whence, to whom, who got it and how. `next`: the cursor of the following page of recipients."""

    recipients: list[RecipientTold]
    next: str | None

    @classmethod
    def of(cls, history: history.History) -> "HistoryTold":
        recipients = [RecipientTold.of(one) for one in history.recipients]
        return cls(**_summary(history), recipients=recipients, next=history.next)


_SAME = (
    "sender", "text", "origin", "state", "version", "verdict", "counts", "reported", "kind", "lane", "priority",
)  # fmt: skip
_TIMES = ("created_at", "deliver_at", "moved_from", "expires_at", "released_at", "finished_at")


def _summary(history: history.History) -> dict[str, Any]:
    same = {name: getattr(history, name) for name in _SAME}
    times = {name: write_optional_time(getattr(history, name)) for name in _TIMES}
    channels = {name: {"state": one.state, **one.counts} for name, one in history.channels.items()}
    own = {"id": history.key.id, "history_key": str(history.key), "tags": list(history.tags), "channels": channels}
    return same | times | own


class Deliveries(Struct):
    """A page of deliveries, newest first. `next`: the cursor of the following page."""

    deliveries: list[Summary]
    next: str | None

    @classmethod
    def of(cls, histories: Iterable[history.History], cursor: str | None) -> "Deliveries":
        return cls([Summary.of(one) for one in histories], cursor)


class Cancelled(Struct):
    """`cancelled`: how many will not get it any more; `already_sent`: whom it was sent to before that."""

    cancelled: int
    already_sent: list[Id]
    in_flight: list[Id]

    @classmethod
    def of(cls, cancelled: delivery.Cancelled) -> "Cancelled":
        return cls(cancelled.cancelled, list(cancelled.already_sent), list(cancelled.in_flight))


class CancelledMany(Struct):
    """How many recipients will not get what they would have got."""

    cancelled: int


class Retried(Struct):
    """How many pairs of recipient and channel are queued anew."""

    queued: int


class Tracked(Struct):
    """What was known when the wait ended. `history` is null while the key has no delivery yet."""

    history: HistoryTold | None
    timed_out: bool


class OutcomeChanged(Struct):
    """One event of a stream."""

    version: int
    state: DeliveryState
    recipient: Id
    channel: str
    outcome: Outcome


class StateChanged(Struct):
    """The event of a stream that is about the whole delivery."""

    version: int
    state: DeliveryState


def of_change(change: history.Change) -> OutcomeChanged | StateChanged:
    """An event's data."""
    if change.recipient is None or change.channel is None or change.outcome is None:
        return StateChanged(change.version, change.state)
    outcome = Outcome.of(change.outcome)
    return OutcomeChanged(change.version, change.state, change.recipient, change.channel, outcome)


class Tasks(Struct):
    """A page of the queue's tasks."""

    tasks: Sequence[Mapping[str, Any]]
    next: str | None


class Reported(Struct):
    """Whether the report told anything new; repeats and late news change nothing."""

    changed: bool


class Alive(Struct):
    """The process answers."""

    status: str


class FaultTold(Struct):
    """One thing wrong with what was sent."""

    path: str
    code: str
    message: str


class Refusal(Struct):
    """RFC 9457. `code` is stable; `errors` names each fault of what was sent."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    errors: list[FaultTold] | UnsetType = UNSET
