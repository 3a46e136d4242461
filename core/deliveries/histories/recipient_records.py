"""Derives the records of recipients from the fields of a history: outcomes, answers, reminders, texts. Pure."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from msgspec.structs import replace

from core.deliveries.histories.encoding import (
    StoredRecipient,
    load_content,
    load_hours,
    load_opted_out,
)
from core.deliveries.histories.parcels import outcome_field, split_label
from core.deliveries.histories.projection import (
    HistoryFields,
    channels_of,
    is_being_cancelled,
    labelled_fields,
    labels_of,
    read_outcome,
    row_numbers,
    unwritten_status,
)
from core.model.clock import from_ms
from core.model.delivery import GuardedChild
from core.model.history import (
    OutcomeRecord,
    RecipientRecord,
    ReminderRecord,
)
from core.model.history_key import Id
from core.model.hours import next_opening
from core.model.question import (
    AnswerState,
    RecipientAnswer,
    answer_state,
    load_question,
    load_row,
    reached_field,
    row_field,
    shown_row,
)
from core.model.states import REACHED, Reason, Status, best
from core.model.text.personal import PersonalTemplate, load_texts, values_in

_OPTED_OUT = OutcomeRecord(Status.SKIPPED, Reason.OPTED_OUT)
_BLOCKED = OutcomeRecord(Status.SKIPPED, Reason.PERSON_BLOCKED)


def recipient_records(
    recipients: Sequence[StoredRecipient],
    fields: HistoryFields,
    outcomes: HistoryFields,
    now: datetime,
    under_way: Collection[str] = frozenset(),
) -> list[RecipientRecord]:
    """Return one record per recipient. `fields`: also the rows of their answers. `outcomes`: outcome field → stored
    text. `under_way`: the outcome fields of the entries that are under way although the delivery was cancelled.
    """
    channels, opted_out = channels_of(fields), load_opted_out(fields["opted_out"])
    hours, created = load_hours(fields["hours"]), from_ms(fields["created"] or 0)
    records = [
        _recipient_record(one, channels, _left_by(one, opted_out), fields, outcomes, under_way) for one in recipients
    ]
    if hours and not is_being_cancelled(fields):
        pairs = zip(recipients, records, strict=True)
        at = max(now, from_ms(fields["due"] or 0))
        records = [_with_opening(record, next_opening(hours.get(one.number, ""), at, created)) for one, record in pairs]
    if fields["personal"] is None:
        return records
    return [replace(record, text=text) for record, text in zip(records, _texts(recipients, fields), strict=True)]


def _with_opening(record: RecipientRecord, opening: datetime | None) -> RecipientRecord:
    """Return the record with the moment until which its queued outcomes wait."""
    if opening is None:
        return record
    outcomes = {
        channel: replace(one, not_before=opening) if one.status is Status.QUEUED else one
        for channel, one in record.outcomes.items()
    }
    return replace(record, outcomes=outcomes)


def _texts(recipients: Iterable[StoredRecipient], fields: HistoryFields) -> Iterator[str | None]:
    """Emit the personal text of each recipient; None where its data were deleted."""
    named: list[str] = json.loads(fields["personal"] or "[]")
    template = PersonalTemplate(fields["text"] or "", load_content(fields["content"]), load_texts(fields["texts"]))
    for one in recipients:
        yield template.text(values_in(named, one.values)) if one.values else None


def _left_by(recipient: StoredRecipient, opted_out: Mapping[str, Collection[int]]) -> list[str]:
    """Return the channels in which a recipient wants no messages."""
    return [channel for channel, numbers in opted_out.items() if recipient.number in numbers]


def _recipient_record(
    recipient: StoredRecipient,
    channels: Sequence[str],
    opted_out: Collection[str],
    fields: HistoryFields,
    outcomes: HistoryFields,
    under_way: Collection[str],
) -> RecipientRecord:
    skipped = _BLOCKED if recipient.number in json.loads(fields["blocked"] or "[]") else _OPTED_OUT
    records = {
        channel: skipped
        if channel in opted_out
        else _outcome_in_channel(recipient.id, channel, contacts, fields, outcomes, under_way)
        for channel, contacts in zip(channels, recipient.contacts, strict=True)
    }
    received_in = [channel for channel, record in records.items() if record.status in REACHED]
    is_reached = bool(received_in) or recipient.is_reached
    answer = _answer_of(recipient, fields, is_reached=is_reached) if fields.get("answer") else None
    reminders = _reminders_of(recipient, fields, outcomes) if fields["answers_reminders"] else []
    origin = list(recipient.origin)
    is_member = recipient.number >= int(fields["recipients"] or 0)
    return RecipientRecord(
        recipient.id,
        recipient.name,
        origin,
        received_in,
        records,
        answer=answer,
        reminders=reminders,
        is_member=is_member,
        is_child=is_member and bool(fields.get("answers_children")),
        children=[GuardedChild(one.id, one.name) for one in recipient.children],
    )


def _reminders_of(recipient: StoredRecipient, fields: HistoryFields, outcomes: HistoryFields) -> list[ReminderRecord]:
    found = []
    for label, name in labelled_fields(recipient, labels_of(fields)):
        channel, wave = split_label(label)
        if wave and (text := outcomes.get(name)):
            found.append(ReminderRecord(wave, channel, read_outcome(text, over=False)))
    return found


def _answer_of(recipient: StoredRecipient, fields: HistoryFields, *, is_reached: bool) -> RecipientAnswer:
    if recipient.asked_children:
        rows = [load_row(fields.get(row_field(number))) for number in row_numbers(recipient)]
        if all(rows) and not recipient.is_own_child:
            return RecipientAnswer(AnswerState.ANSWERED)
    row = shown_row(load_question(fields["answer"]), load_row(fields.get(row_field(recipient.number))))
    is_reached = is_reached or int(fields.get(reached_field(recipient.number)) or 0) > 0  # about a child: a guardian
    is_closed = fields["answers_closed"] is not None
    is_over = fields["finished"] is not None
    return RecipientAnswer(answer_state(row, is_reached=is_reached, is_over=is_over, is_closed=is_closed), row)


def _outcome_in_channel(
    recipient: Id,
    channel: str,
    contacts: int,
    fields: HistoryFields,
    outcomes: HistoryFields,
    under_way: Collection[str],
) -> OutcomeRecord:
    """Return one outcome for a recipient in a channel: the best one of its contacts there, with the
    parts of all.
    """
    if contacts == 0:
        return OutcomeRecord(Status.NO_CONTACT)
    names = [outcome_field(recipient, channel, contact) for contact in range(contacts)]
    records = [_outcome_of_entry(outcomes.get(name), fields, is_under_way=name in under_way) for name in names]
    status = best([record.status for record in records])
    chosen = next(record for record in records if record.status is status)
    return replace(chosen, parts=sum(record.parts for record in records)) if contacts > 1 else chosen


def _outcome_of_entry(text: str | None, fields: HistoryFields, *, is_under_way: bool) -> OutcomeRecord:
    record = read_outcome(text, fields["finished"] is not None) if text else OutcomeRecord(Status.QUEUED)
    # An entry that was queued again and never attempted shares the end of the delivery, like one never written.
    if record.status is Status.QUEUED and not is_under_way:
        return replace(record, status=unwritten_status(fields))
    return record
