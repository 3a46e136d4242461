"""The invariants of questions. I26: an answer counts once for its person, and the totals are those of the answers. I27:
a reminder never goes to who has answered. I28: no option has more people than places, and nobody waits while one
is free. I29: where a number of confirmations is needed, nobody is asked before its turn. I30: nothing joins
a person and its answer to an anonymous question. Pure.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from core.audit.invariants.invariant import Violation
from core.deliveries.histories.encoding import StoredRecipient
from core.deliveries.histories.parcels import outcome_field
from core.deliveries.histories.projection import waves_of
from core.model.clock import to_ms
from core.model.question import (
    AnswerKind,
    AnswerRow,
    AnswerState,
    Late,
    Question,
    load_question,
    load_row,
    member_field,
    reached_field,
    row_field,
)
from core.model.states import Status

_RULE, _REMINDERS, _PLACES, _WAVES = "I26", "I27", "I28", "I29"
_ANONYMOUS, _OPTION = "I30", "answers:option:"
_TOOK_PART = {"state": "answered", "value": "", "at": 0, "by": "", "version": 0}
_NOT_ASKED = (Status.QUEUED, Status.SKIPPED, Status.CANCELLED, Status.EXPIRED, Status.NO_CONTACT)
_ROW, _COUNTER, _MEMBER = "answer:", "answers:", member_field(0)[:-1]


def answer_violations(
    key: str, fields: Mapping[str, str], recipients: int, reached: Collection[int]
) -> Iterator[Violation]:
    """Yield the violations in a history. `fields`: those of its question and answers. `reached`: the numbers of the
    recipients that are known to be reached.
    """
    question = load_question(fields.get("answer"))
    found = {int(name[len(_ROW) :]): load_row(text) for name, text in fields.items() if name.startswith(_ROW)}
    rows = {number: row for number, row in found.items() if row is not None}
    if question is None:
        if rows:
            yield Violation(
                _RULE, key, f"{len(rows)} answers without a question", "none", why="what was asked is unknown"
            )
        return
    yield from _member_violations(key, fields, recipients, rows)
    if question.is_anonymous:
        yield from _anonymous_violations(key, fields, len(rows))
    counted = {name: int(text) for name, text in fields.items() if name.startswith(_COUNTER) and int(text)}
    informed = {number for number in rows if int(fields.get(reached_field(number), 0)) > 0}
    wanted = _counted(question, rows, {*reached, *informed})
    if question.is_anonymous:
        counted = {name: n for name, n in counted.items() if not name.startswith(_OPTION)}
    if counted != wanted:
        yield Violation(
            _RULE, key, f"counts {counted}", f"{wanted}", why="a wrong total is counted on by later answers"
        )

    yield from _place_violations(key, question, rows)


def _member_violations(
    key: str, fields: Mapping[str, str], recipients: int, numbers: Collection[int]
) -> Iterator[Violation]:
    """Yield answers without a recipient, and members of group chats not counted once. `numbers`: of the answers."""
    members = {int(name[len(_MEMBER) :]): text for name, text in fields.items() if name.startswith(_MEMBER)}
    counted = int(fields.get("answers_members", 0))
    if not len(set(members.values())) == len(members) == counted:
        found = f"{counted} members of chats: {sorted(members.values())}"
        yield Violation(_RULE, key, found, "each once", why="which answer counts is unknown")
    if strangers := sorted(number for number in numbers if number >= recipients and number not in members):
        why = "who has answered is unknown"
        yield Violation(_RULE, key, f"answers of recipients {strangers}", f"of {recipients} recipients", why=why)


def _anonymous_violations(key: str, fields: Mapping[str, str], answered: int) -> Iterator[Violation]:
    """Yield what joins a person and its answer, and totals that are not as many as the people that took part."""
    total = sum(int(text) for name, text in fields.items() if name.startswith(_OPTION))
    if total != answered:
        yield Violation(_RULE, key, f"{total} answers", f"{answered} people took part", why="what they said is unknown")
    row_texts = {text for name, text in fields.items() if name.startswith(_ROW)}
    if any(json.loads(text) != _TOOK_PART for text in row_texts):
        yield Violation(_ANONYMOUS, key, "rows that differ", "the same row for everybody", why="it was read")


def _place_violations(key: str, question: Question, rows: Mapping[int, AnswerRow]) -> Iterator[Violation]:
    chosen = [row for row in rows.values() if _is_counted(question, row) and not row.freed]
    for option in question.options:
        if not option.places:
            continue
        taken = sum(row.value == option.key and not row.waiting for row in chosen)
        waiting = sum(row.value == option.key and row.waiting > 0 for row in chosen)
        if taken > option.places or (waiting and taken < option.places):
            found = f"{option.key}: {taken} have one of {option.places} places, {waiting} wait"
            yield Violation(_PLACES, key, found, "all places taken before anybody waits", why="they were told")


def _is_counted(question: Question, row: AnswerRow) -> bool:
    return row.state is AnswerState.ANSWERED or question.late is Late.COUNT


def reminder_violations(
    key: str, fields: Mapping[str, str], people: Sequence[StoredRecipient], outcomes: Mapping[str, str]
) -> Iterator[Violation]:
    """Yield the reminders that went to people who had answered when their wave was made, and more waves than the
    question allows. `outcomes`: field → stored text.
    """
    question, waves = load_question(fields.get("answer")), waves_of(fields.get("answers_reminders"))
    if question is None:
        return
    if len(waves) > question.most_reminders:
        why = "they were sent"
        yield Violation(_REMINDERS, key, f"{len(waves)} reminders", f"at most {question.most_reminders}", why=why)
    rows = {one.number: load_row(fields.get(row_field(one.number))) for one in people}
    wrong = [
        (one.id, label)
        for one in people
        for wave in waves
        for label in wave.labels
        if (row := rows[one.number]) and min([row.at, *(old.at for old in row.revisions)]) < to_ms(wave.at)
        if any(outcome_field(one.id, label, contact) in outcomes for contact in range(max(one.contacts, default=0)))
    ]
    if wrong:
        yield Violation(_REMINDERS, key, f"reminders of {wrong[:10]}, who had answered", "none", why="they were sent")


def wave_violations(
    key: str,
    fields: Mapping[str, str],
    people: Sequence[StoredRecipient],
    outcomes: Mapping[str, str],
    channels: Iterable[str],
) -> Iterator[Violation]:
    """Yield who was asked before its turn, where people are asked one wave after another. `outcomes`: field → stored
    text. `channels`: of the delivery.
    """
    question = load_question(fields.get("answer"))
    if question is None or not question.need:
        return
    asked = int(fields.get("answers_asked", 0))
    early = [
        one.id
        for one in [one for one in people if any(one.contacts)][asked:]
        for channel, contacts in zip(channels, one.contacts, strict=True)
        for contact in range(contacts)
        if outcomes.get(outcome_field(one.id, channel, contact), Status.QUEUED).split("|")[0] not in _NOT_ASKED
    ]
    if early:
        yield Violation(_WAVES, key, f"asked: {early[:10]}", f"the first {asked}", why="they were sent")


def _counted(question: Question, rows: Mapping[int, AnswerRow], reached: Collection[int]) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for number, row in rows.items():
        counts[f"{_COUNTER}{row.state}"] += 1
        counts[f"{_COUNTER}unreached"] += number not in reached
        counts[f"{_COUNTER}conflict"] += row.conflict
        if _is_counted(question, row):
            if question.is_anonymous:
                continue
            if question.has_options and not row.freed:
                counts[f"{_COUNTER}{'waiting' if row.waiting else 'option'}:{row.value}"] += 1
            elif question.kind is AnswerKind.NUMBER:
                counts[f"{_COUNTER}sum"] += round(float(row.value) * 100)
    return {name: n for name, n in counts.items() if n}
