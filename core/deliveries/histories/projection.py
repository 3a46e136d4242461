"""Derives a `History` from the fields of its hash; `recipient_records` does so for its recipients. Pure; only these two
have the rules.

An outcome that was never written is `queued` while the delivery is scheduled or released. Afterwards it shares the end
of the delivery (`cancelled`, `expired`). It is `no_contact` where the recipient has no contact in that channel, and
`skipped` where it wants no messages (`opted_out`) or was blocked (`person_blocked`).

A cancelled delivery is over when the last worker has returned its parcel. Until then the entries that are *under way*
keep their status, because a worker may send to them at this moment.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from msgspec.structs import replace

from core.deliveries.histories.encoding import (
    ChannelPlan,
    StoredRecipient,
    load_content,
    load_links,
    load_opted_out,
    load_plan,
    load_uninformed,
)
from core.deliveries.histories.parcels import load_reference, outcome_field, split_label
from core.model.clock import from_ms
from core.model.delivery import DEFAULT_KIND, DEFAULT_ORIGIN, DEFAULT_PRIORITY, Strategy
from core.model.history import (
    ChannelRecord,
    History,
    HistoryLink,
    OutcomeRecord,
    RecipientRecord,
    Reminders,
    ReminderWave,
)
from core.model.history_key import HistoryKey
from core.model.question import (
    AnswerTotals,
    load_question,
    question_of,
    reached_field,
    row_field,
)
from core.model.question import totals as answer_totals
from core.model.states import DeliveryState, Reason, Status, verdict
from core.model.text.personal import LANGUAGE, load_texts

# The fields of a history except its counters, pages and parcels.
FIELDS = (
    *("tenant", "sender", "text", "origin", "state", "version", "created", "due", "released", "finished", "expires"),
    *("asked", "recipients", "reachable", "reached", "reported", "plan", "kind", "tags", "lane"),
    *("priority", "lapsed", "strategy", "wait", "opted_out", "blocked", "hours", "content", "personal", "rescheduled"),
    *("answer", "answers_until", "answers_closed", "answers_closing", "answers_reminders", "answers_remind_at"),
    *("answers_members", "answers_children", "answers_children_reached"),
    *("follows", "followed", "left_out", "texts", "refused_replies", "uninformed"),
)

_COUNTED: tuple[Status, ...] = tuple(status for status in Status if status not in (Status.QUEUED, Status.NO_CONTACT))
HistoryFields = Mapping[str, str | None]
"""Field → value; None where the field is missing."""


def channels_of(fields: HistoryFields) -> list[str]:
    """Return the channels of a delivery, in its order."""
    return [plan.channel for plan in load_plan(fields["plan"] or "")]


def counter_fields(channels: Sequence[str]) -> list[str]:
    """Return the counters of these channels in the history's hash."""
    per_status = [f"n:{channel}:{status}" for channel in channels for status in _COUNTED]
    return [*per_status, *(f"left:{channel}" for channel in channels)]


def is_being_cancelled(fields: HistoryFields) -> bool:
    """Return whether the delivery was cancelled and workers still have parcels of it."""
    return fields["state"] == DeliveryState.CANCELLED and fields["finished"] is None


def unwritten_status(fields: HistoryFields) -> Status:
    """Return the status of an outcome that was never written, of an entry that is not under way, in a channel where the
    recipient has a contact.
    """
    if fields["state"] == DeliveryState.CANCELLED:
        return Status.CANCELLED
    if fields["finished"] is None:
        return Status.QUEUED
    return Status.EXPIRED if fields.get("lapsed") else Status.CANCELLED


def read_outcome(text: str, over: bool) -> OutcomeRecord:
    """Decode `status|reason|at ms|version|attempts|reference`, the paid parts, what the provider said, and what was not
    shown (lua/delivery/modules/outcome.lua). In a delivery that is `over`, an attempt whose outcome was never reported
    is `unknown`.
    """
    status, reason, at, version, attempts, reference = text.split("|", 5)
    if over and Status(status) is Status.SENDING:
        status, reason = Status.UNKNOWN, Reason.CRASHED
    said = load_reference(reference)
    known = Status(status), reason or None, said.reference or None, int(attempts), from_ms(at), int(version)
    return OutcomeRecord(*known, said.not_shown, said.detail or None, said.parts)


def channel_records(fields: HistoryFields, counters: HistoryFields) -> dict[str, ChannelRecord]:
    """Return state and counts of each channel. The counts of a channel add up to the recipients of the delivery."""
    total = int(fields["recipients"] or 0)
    plans = load_plan(fields["plan"] or "")
    opted_out = load_opted_out(fields["opted_out"])
    return {
        plan.channel: _channel_record(plan, total, len(opted_out.get(plan.channel, ())), fields, counters)
        for plan in plans
    }


def _channel_record(
    plan: ChannelPlan, total: int, opted_out: int, fields: HistoryFields, counters: HistoryFields
) -> ChannelRecord:
    over = fields["finished"] is not None
    counts: dict[Status, int] = {status: int(counters.get(f"n:{plan.channel}:{status}") or 0) for status in _COUNTED}
    if over:
        counts[Status.UNKNOWN] += counts[Status.SENDING]
        counts[Status.SENDING] = 0
    unwritten = plan.recipients - sum(counts.values())
    if is_being_cancelled(fields):
        left = int(counters.get(f"left:{plan.channel}") or 0)
        counts[Status.QUEUED] = min(unwritten, max(0, left - counts[Status.SENDING]))
        unwritten -= counts[Status.QUEUED]
    if unwritten:
        status = unwritten_status(fields)
        counts[status] = counts.get(status, 0) + unwritten
    counts[Status.SKIPPED] += opted_out
    counts[Status.NO_CONTACT] = total - plan.recipients - opted_out
    state = _channel_state(plan, over, fields, counters)
    return ChannelRecord(state, {status: count for status, count in counts.items() if count})


def _channel_state(plan: ChannelPlan, over: bool, fields: HistoryFields, counters: HistoryFields) -> str:
    if over:
        return "reported"
    left = counters.get(f"left:{plan.channel}")
    if left is not None:
        return "pending" if int(left) > 0 else "reported"
    return "pending" if sum(plan.parcels) or fields["state"] == DeliveryState.SCHEDULED else "reported"


def waves_of(text: str | None) -> list[ReminderWave]:
    """Return the waves of reminders of a delivery, as lua/answers/modules/reminders.lua stores them."""
    lines = (line.split("|") for line in (text or "").split("\n") if line)
    return [
        ReminderWave(from_ms(at), int(people), by, labels.split(";") if labels else ())
        for at, people, by, labels in lines
    ]


def labels_of(fields: HistoryFields) -> list[str]:
    """Return the channels of a delivery, and the labels of its reminders."""
    return [*channels_of(fields), *(label for wave in waves_of(fields["answers_reminders"]) for label in wave.labels)]


def outcome_fields(recipients: Iterable[StoredRecipient], labels: Sequence[str]) -> list[str]:
    """Return the fields of all outcomes of these recipients. `labels`: `labels_of`."""
    return [name for one in recipients for _, name in labelled_fields(one, labels)]


def labelled_fields(recipient: StoredRecipient, labels: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Emit the fields of all outcomes of a recipient, each behind its label. `labels`: `labels_of`."""
    contacts = dict(zip(labels, recipient.contacts, strict=False))
    for label in labels:
        for contact in range(contacts[split_label(label)[0]]):
            yield label, outcome_field(recipient.id, label, contact)


def answer_fields(recipients: Iterable[StoredRecipient], fields: HistoryFields) -> list[str]:
    """Return the fields of the answers of these recipients, and whether somebody was reached about those that are
    children too; none if the delivery asks nothing.
    """
    if not fields["answer"]:
        return []
    recipients = list(recipients)
    reached = [reached_field(one.number) for one in recipients if one.is_own_child]
    return [*(row_field(number) for one in recipients for number in row_numbers(one)), *reached]


def row_numbers(recipient: StoredRecipient) -> Sequence[int]:
    """Return the numbers of the rows that say whether a recipient has answered: those of the children of a guardian."""
    return [one.number for one in recipient.asked_children] or [recipient.number]


def assemble(
    key: HistoryKey,
    fields: HistoryFields,
    counters: HistoryFields,
    recipients: Sequence[RecipientRecord],
    cursor: str | None,
) -> History:
    """Return the history with one page of recipients."""
    total, reached = int(fields["recipients"] or 0), int(fields["reached"] or 0)
    links = {name: _links(key, fields[name]) for name in ("follows", "followed")}
    return replace(
        _delivery(key, fields, channel_records(fields, counters)),
        recipients=recipients,
        next=cursor,
        question=question_of(fields),
        answers=_answers(fields, counters, total, reached),
        reminders=Reminders(waves_of(fields["answers_reminders"]), _optional_time(fields["answers_remind_at"])),
        follows=next(iter(links["follows"]), None),
        followed_by=links["followed"],
        refused_replies=int(fields["refused_replies"] or 0),
    )


def _delivery(key: HistoryKey, fields: HistoryFields, channels: Mapping[str, ChannelRecord]) -> History:
    """Return the history without recipients, answers and follow-ups."""
    total, reached = int(fields["recipients"] or 0), int(fields["reached"] or 0)
    reachable, left_out = int(fields["reachable"] or total), int(fields["left_out"] or 0)
    state, is_over = DeliveryState(fields["state"] or ""), fields["finished"] is not None
    return History(
        key=key,
        tenant=fields["tenant"] or "",
        sender=json.loads(fields["sender"] or "{}"),
        text=fields["text"] or "",
        origin=fields["origin"] or DEFAULT_ORIGIN,
        state=state,
        version=int(fields["version"] or 0),
        created_at=from_ms(fields["created"] or 0),
        deliver_at=from_ms(fields["due"] or 0),
        released_at=_optional_time(fields["released"]),
        finished_at=_optional_time(fields["finished"]),
        expires_at=_optional_time(fields["expires"]),
        moved_from=_optional_time(fields["asked"]),
        verdict=verdict(state, reachable, min(reached + left_out, reachable), is_over=is_over),
        counts=_totals(total, reached, channels),
        channels=channels,
        kind=fields["kind"] or DEFAULT_KIND,
        tags=json.loads(fields["tags"] or "[]"),
        lane=fields["lane"],
        priority=int(fields["priority"] or DEFAULT_PRIORITY),
        strategy=Strategy(fields["strategy"] or Strategy.ALL),
        wait=timedelta(milliseconds=int(fields["wait"])) if fields["wait"] else None,
        content=load_content(fields["content"]),
        personal=[field for field in json.loads(fields["personal"] or "[]") if field != LANGUAGE],
        texts=load_texts(fields["texts"]),
        reported=sum(1 for channel in channels.values() if channel.state == "reported"),
        left_out=left_out,
        uninformed=load_uninformed(fields["uninformed"]),
    )


def _links(key: HistoryKey, text: str | None) -> list[HistoryLink]:
    """Return links to deliveries of the same shard."""
    return [HistoryLink(HistoryKey.of(key.shard, suffix), of) for of, suffix in load_links(text)]


def _answers(fields: HistoryFields, counters: HistoryFields, recipients: int, reached: int) -> AnswerTotals | None:
    question = load_question(fields["answer"])
    if question is None:
        return None
    is_over, closed_at = fields["finished"] is not None, int(fields["answers_closed"] or 0)
    asked = recipients + int(fields["answers_members"] or 0)
    if fields["answers_children"]:
        asked, reached = int(fields["answers_children"]), int(fields["answers_children_reached"] or 0)
    return answer_totals(question, counters, recipients=asked, reached=reached, is_over=is_over, closed_at=closed_at)


def _optional_time(ms: str | None) -> datetime | None:
    return from_ms(ms) if ms else None


def _totals(recipients: int, reached: int, channels: Mapping[str, ChannelRecord]) -> dict[str, int]:
    counts = {"recipients": recipients, "reached": reached}
    for status in Status:
        counts[status] = sum(record.counts.get(status, 0) for record in channels.values())
    return counts
