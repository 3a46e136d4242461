"""From the history's hash to a `History`: what was never written is derived here, by the same rules everywhere. Pure.

An outcome that was never written is `queued` while the delivery is at work, shares its end (`cancelled`, `expired`)
after, and is `no_contact` where the recipient has none in that channel.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from msgspec.structs import replace

from core.history.parcels import USUAL_KIND, USUAL_ORIGIN, USUAL_PRIORITY, Leg, Person, load_plan, outcome_field
from core.model.clock import from_ms
from core.model.history import ChannelRecord, History, OutcomeRecord, RecipientRecord
from core.model.history_key import HistoryKey, Id
from core.model.states import REACHED, DeliveryState, Reason, Status, best, verdict

# What the history keeps besides its counters.
FACTS = (
    *("tenant", "sender", "text", "origin", "state", "version", "created", "due", "released", "finished", "expires"),
    *("asked", "recipients", "reachable", "reached", "reported", "plan", "kind", "tags", "lane"),
    *("priority", "lapsed"),
)

_COUNTED: tuple[Status, ...] = tuple(status for status in Status if status not in (Status.QUEUED, Status.NO_CONTACT))
_OVER = frozenset({DeliveryState.FINISHED, DeliveryState.CANCELLED, DeliveryState.EXPIRED})

Facts = Mapping[str, str | None]


def channels_of(facts: Facts) -> list[str]:
    """The channels of a delivery, in its order."""
    return [leg.channel for leg in load_plan(facts["plan"] or "")]


def counter_fields(channels: Sequence[str]) -> list[str]:
    """The counters of these channels in the history's hash."""
    per_channel = [f"n:{channel}:{status}" for channel in channels for status in _COUNTED]
    return [*per_channel, *(f"left:{channel}" for channel in channels)]


def unwritten(facts: Facts) -> Status:
    """The status of an outcome that was never written, in a channel where the recipient has a contact."""
    state = DeliveryState(facts["state"] or "")
    if state is DeliveryState.CANCELLED:
        return Status.CANCELLED
    if facts.get("lapsed") and state in _OVER:
        return Status.EXPIRED
    return Status.QUEUED if state not in _OVER else Status.CANCELLED


def read_outcome(text: str, over: bool) -> OutcomeRecord:
    """`status|reason|at ms|version|attempts|reference`. An attempt whose end nobody told by the end of the delivery is
    `unknown`.
    """
    status, reason, at, version, attempts, reference = text.split("|", 5)
    if over and Status(status) is Status.SENDING:
        status, reason = Status.UNKNOWN, Reason.CRASHED
    return OutcomeRecord(Status(status), reason or None, reference or None, int(attempts), from_ms(at), int(version))


def channel_records(facts: Facts, counters: Facts) -> dict[str, ChannelRecord]:
    """State and counts of each channel; the counts of a channel add up to the recipients."""
    total = int(facts["recipients"] or 0)
    return {leg.channel: _channel_record(leg, total, facts, counters) for leg in load_plan(facts["plan"] or "")}


def _channel_record(leg: Leg, total: int, facts: Facts, counters: Facts) -> ChannelRecord:
    over = DeliveryState(facts["state"] or "") in _OVER
    counts: dict[Status, int] = {status: int(counters.get(f"n:{leg.channel}:{status}") or 0) for status in _COUNTED}
    if over:
        counts[Status.UNKNOWN] += counts[Status.SENDING]
        counts[Status.SENDING] = 0
    rest = leg.people - sum(counts.values())
    if rest:
        counts[unwritten(facts)] = counts.get(unwritten(facts), 0) + rest
    counts[Status.NO_CONTACT] = total - leg.people
    return ChannelRecord(_channel_state(leg, over, facts, counters), {status: n for status, n in counts.items() if n})


def _channel_state(leg: Leg, over: bool, facts: Facts, counters: Facts) -> str:
    if over:
        return "reported"
    left = counters.get(f"left:{leg.channel}")
    if left is not None:
        return "pending" if int(left) > 0 else "reported"
    return "pending" if sum(leg.parcels) or facts["state"] == DeliveryState.SCHEDULED else "reported"


def wanted_outcomes(people: Iterable[Person], channels: Sequence[str]) -> list[str]:
    """The outcome fields of these people, in the order in which `recipient_records` takes their values."""
    return [
        outcome_field(person.id, channel, contact)
        for person in people
        for channel, contacts in zip(channels, person.contacts, strict=True)
        for contact in range(contacts)
    ]


def recipient_records(
    people: Iterable[Person], facts: Facts, values: Mapping[str, str | None]
) -> list[RecipientRecord]:
    """One record per person. `values`: outcome field → stored text."""
    channels = channels_of(facts)
    return [_recipient_record(person, channels, facts, values) for person in people]


def _recipient_record(
    person: Person, channels: Sequence[str], facts: Facts, values: Mapping[str, str | None]
) -> RecipientRecord:
    outcomes = {
        channel: _merged(person.id, channel, contacts, facts, values)
        for channel, contacts in zip(channels, person.contacts, strict=True)
    }
    received = [channel for channel, outcome in outcomes.items() if outcome.status in REACHED]
    return RecipientRecord(person.id, person.name, list(person.origin), received, outcomes)


def _merged(
    recipient: Id, channel: str, contacts: int, facts: Facts, values: Mapping[str, str | None]
) -> OutcomeRecord:
    """One outcome for a recipient in a channel, however many contacts he has there."""
    if contacts == 0:
        return OutcomeRecord(Status.NO_CONTACT)
    over = DeliveryState(facts["state"] or "") in _OVER
    texts = [values.get(outcome_field(recipient, channel, contact)) for contact in range(contacts)]
    written = [read_outcome(text, over) if text else OutcomeRecord(Status.QUEUED) for text in texts]
    # Also what was queued again or put back and never got further shares the end of the delivery.
    rest = unwritten(facts)
    found = [replace(outcome, status=rest) if outcome.status is Status.QUEUED else outcome for outcome in written]
    status = best([outcome.status for outcome in found])
    return next(outcome for outcome in found if outcome.status is status)


def assemble(
    key: HistoryKey, facts: Facts, counters: Facts, people: Sequence[RecipientRecord], cursor: str | None
) -> History:
    """The whole, with one page of recipients."""
    channels = channel_records(facts, counters)
    state = DeliveryState(facts["state"] or "")
    recipients, reached = int(facts["recipients"] or 0), int(facts["reached"] or 0)
    reachable = int(facts["reachable"] or recipients)
    return History(
        key=key,
        tenant=facts["tenant"] or "",
        sender=json.loads(facts["sender"] or "{}"),
        text=facts["text"] or "",
        origin=facts["origin"] or USUAL_ORIGIN,
        state=state,
        version=int(facts["version"] or 0),
        created_at=from_ms(facts["created"] or 0),
        deliver_at=from_ms(facts["due"] or 0),
        released_at=_moment(facts["released"]),
        finished_at=_moment(facts["finished"]),
        expires_at=_moment(facts["expires"]),
        moved_from=_moment(facts["asked"]),
        verdict=verdict(state, reachable, reached),
        counts=_totals(recipients, reached, channels),
        channels=channels,
        kind=facts["kind"] or USUAL_KIND,
        tags=json.loads(facts["tags"] or "[]"),
        lane=facts["lane"],
        priority=int(facts["priority"] or USUAL_PRIORITY),
        reported=sum(1 for channel in channels.values() if channel.state == "reported"),
        recipients=people,
        next=cursor,
    )


def _moment(ms: str | None) -> datetime | None:
    return from_ms(ms) if ms else None


def _totals(recipients: int, reached: int, channels: Mapping[str, ChannelRecord]) -> dict[str, int]:
    counts = {"recipients": recipients, "reached": reached}
    for status in Status:
        counts[status] = sum(record.counts.get(status, 0) for record in channels.values())
    return counts
