"""The status of a delivery as its sender sees it (D-17): the text, the buttons, who was not reached, and who has
answered what (R-20). Pure, but for the reading of the people.

A delivery that asks shows the totals of its question, too.

The data of a button is `delivery:<verb>:<shard>.<unix ns>`; with the id of the person who presses it, this names a
delivery, so it never reaches another person's.
"""

import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from datetime import tzinfo

from msgspec import Struct

from core.answers.values import answer_text
from core.deliveries.deliveries import Deliveries
from core.deliveries.histories.recipient_search import RecipientFilter, telling_outcome
from core.directory.users import Users
from core.model.contacts.addresses import channel_title
from core.model.history import History, RecipientRecord
from core.model.history_key import HistoryKey, Id
from core.model.people import id_text
from core.model.question import AnswerState, Question, RecipientAnswer
from core.model.states import OPEN, DeliveryState, Reason, Status, Verdict
from core.model.text.text_parts import beginning_of
from core.sentence import Text
from core.updates.answer_words import totals_lines
from scenarios.sending.person import moment
from scenarios.words import in_language, sentence

_NAMES = 35
"""Names in the list of those who were not reached; a message has room for them."""
_MOST_OF_NAME = 60
_MOST_OF_ANSWER = 100
_LONGEST_LIST = 3500
"""Characters of the list of answers; a message of Telegram, VK and MAX has room for 4,000."""
_PAGE = 500
_PRESS = re.compile(r"delivery:(cancel|retry|missed|answers|remind|close):(\d{1,5})\.(\d{19})")
_VERDICTS = {
    Verdict.SCHEDULED: "status_scheduled",
    Verdict.IN_PROGRESS: "status_in_progress",
    Verdict.PARTLY: "status_partly",
    Verdict.ALL_REACHED: "status_all_reached",
    Verdict.SOME_REACHED: "status_some_reached",
    Verdict.NOTHING_WORKED: "status_nothing_worked",
    Verdict.CANCELLED: "status_cancelled",
    Verdict.NOBODY_TO_REACH: "status_nobody_to_reach",
}
# The result is that of the end, or of an hour after the release: then nothing is scheduled.
_RESULTS = {
    "status_scheduled": "result_in_progress",
    "status_in_progress": "result_in_progress",
    "status_partly": "result_partly",
    "status_all_reached": "result_all_reached",
    "status_everybody_reached": "result_everybody_reached",
    "status_some_reached": "result_some_reached",
    "status_nothing_worked": "result_nothing_worked",
    "status_cancelled": "result_cancelled",
    "status_nobody_to_reach": "result_nobody_to_reach",
}
_COUNTS = {
    Status.QUEUED: "count_queued",
    Status.SENDING: "count_sending",
    Status.SENT: "count_sent",
    Status.DELIVERED: "count_delivered",
    Status.READ: "count_read",
    Status.FAILED: "count_failed",
    Status.UNKNOWN: "count_unknown",
    Status.CANCELLED: "count_cancelled",
    Status.EXPIRED: "count_expired",
}
_LABELS = {
    "cancel": "button_cancel_delivery",
    "retry": "button_retry",
    "missed": "button_missed",
    "answers": "button_answers",
    "remind": "button_remind",
    "close": "button_close_question",
}
_WITHOUT_ANSWER = (AnswerState.OPEN, AnswerState.SILENT, AnswerState.UNREACHABLE)
_WHY_REASONS: Mapping[str, str] = {
    Reason.BLOCKED: "why_blocked",
    Reason.PERSON_BLOCKED: "why_person_blocked",
    Reason.SENDER_BLOCKED: "why_sender_blocked",
    Reason.SENDER_NOT_ALLOWED: "why_sender_not_allowed",
}
_WHY = {
    Status.FAILED: "why_failed",
    Status.UNKNOWN: "why_unknown",
    Status.EXPIRED: "why_expired",
    Status.CANCELLED: "why_cancelled",
    Status.SKIPPED: "why_opted_out",
}


class StatusPress(Struct, frozen=True):
    """A pressed button: `cancel`, `retry`, `missed`, `answers`, `remind` or `close`."""

    verb: str
    shard: int
    ns: int

    def key(self, person: Id) -> HistoryKey:
        """Return the delivery of the person who presses."""
        return HistoryKey(self.shard, id_text(person), self.ns)


def status_press(data: str) -> StatusPress | None:
    """Return what a button of a status means; None for any other button."""
    found = _PRESS.fullmatch(data)
    return StatusPress(found[1], int(found[2]), int(found[3])) if found else None


def data_of(verb: str, key: HistoryKey) -> str:
    return f"delivery:{verb}:{key.shard}.{key.ns}"


def status_text(history: History, language: str, timezone: tzinfo) -> str:
    """Return the status in a few lines."""
    counts = history.counts
    is_moved = history.moved_from is not None and history.state is DeliveryState.SCHEDULED
    lines = [
        _said(status_code(history), language, time=moment(history.deliver_at, timezone)),
        *([_said("status_moved", language)] if is_moved else []),
        _said("status_counts", language, people=counts["recipients"], reached=counts["reached"]),
        *_channel_lines(history, language),
        *(totals_lines(history.question, history.answers, language) if history.question and history.answers else ()),
    ]
    return "\n".join(line for line in lines if line)


def result_text(history: History, language: str, title: str) -> str:
    """Return the result of a delivery in one line, for a channel that cannot change a message. `title`: of the
    addressee, as the sender knows it.
    """
    code = _RESULTS[status_code(history)]
    return _said(code, language, title=title, people=history.counts["recipients"], reached=history.counts["reached"])


def status_code(history: History) -> str:
    """Return the code of the sentence for a verdict. `all_reached` leaves out the people that cannot be reached."""
    if history.verdict is Verdict.ALL_REACHED and history.counts["reached"] == history.counts["recipients"]:
        return "status_everybody_reached"
    return _VERDICTS[Verdict(history.verdict)]


def status_buttons(history: History, language: str) -> Sequence[tuple[str, str]]:
    """Return the verbs that are possible now, each with its label."""
    is_over, counts = history.finished_at is not None, history.counts
    verbs = ["cancel"] if history.state is DeliveryState.SCHEDULED else []
    verbs += ["retry"] if is_over and counts.get(Status.FAILED) else []
    verbs += ["missed"] if is_over and counts["reached"] < counts["recipients"] else []
    verbs += ["answers"] if history.released_at is not None and history.answers else []
    if history.released_at is not None and is_asking(history):
        verbs += ["remind"] if history.answers and history.answers.states[AnswerState.OPEN] else []
        verbs += ["close"]
    return [(verb, _said(_LABELS[verb], language)) for verb in verbs]


def is_asking(history: History) -> bool:
    """Return whether the delivery has a question that is open."""
    return history.answers is not None and not history.answers.closed_at


def _channel_lines(history: History, language: str) -> Iterator[str]:
    """Yield what each channel has done, but for those in which no recipient has a contact."""
    counts = {channel: _words(record.counts, language) for channel, record in history.channels.items()}
    done = {channel: words for channel, words in counts.items() if words}
    for channel, words in done.items():
        yield f"{channel_title(channel, language)}: {words}"


def _words(counts: Mapping[Status, int], language: str) -> str:
    return ", ".join(
        f"{_said(_COUNTS[status], language)} {count}"
        for status, count in counts.items()
        if count and status not in (Status.NO_CONTACT, Status.SKIPPED)
    )


async def missed_text(deliveries: Deliveries, key: HistoryKey, tenant: str, language: str) -> str:
    """Return who was not reached, and why. Raises NotFound HISTORY_NOT_FOUND."""
    missed = [one async for one in _people(deliveries, key, tenant, RecipientFilter(reached=False))]
    lines = [f"{_name(one)} – {_said(_why(one), language)}" for one in missed[:_NAMES]]
    if len(missed) > _NAMES:
        lines.append(_said("missed_more", language, count=len(missed) - _NAMES))
    head = _said("missed_people", language, count=len(missed)) if missed else _said("missed_nobody", language)
    return "\n".join([head, *lines])


async def answers_text(deliveries: Deliveries, users: Users, key: HistoryKey, tenant: str, language: str) -> str:
    """Return who has answered what, first who has not: children in place of their guardians. Of a hidden question only
    who has. Raises NotFound HISTORY_NOT_FOUND.
    """
    question = (await deliveries.read(key, tenant, limit=1)).question
    people = _people(deliveries, key, tenant, RecipientFilter(members=True))
    counted = [one async for one in people if one.answer and not one.children]
    # A history has no names of members of groups and of children.
    found = await users.lookup(tenant, [one.id for one in counted if one.is_member])
    names = {user.id: user.name for user in found if user}
    options = [option.text for option in question.options] if question and question.has_options else []
    named: dict[str, list[str]] = {_said(f"totals_{state}", language): [] for state in _WITHOUT_ANSWER}
    named.update({text: [] for text in options})
    for one in counted:
        heading, note = _answer_note(question, one.answer, language) if one.answer else ("", "")
        name = _name(one, names.get(one.id))
        named.setdefault(heading, []).append(f"{name} – {note}" if note else name)
    lines = [(f"{heading}: {len(people)}", people) for heading, people in named.items() if people]
    return "\n\n".join(_shortened(lines, language)) or _said("answers_nobody", language)


def _answer_note(question: Question | None, answer: RecipientAnswer, language: str) -> tuple[str, str]:
    """Return the heading of an answer, and what stands behind the name of the person."""
    heading, row = _said(f"totals_{answer.state}", language), answer.row
    if row is None or question is None or question.is_hidden or question.is_anonymous:
        return heading, ""
    notes = [answer_text(question, row)]
    if question.has_options:
        notes += [row.text] if row.text else []
        heading = notes.pop(0) if answer.state is AnswerState.ANSWERED else heading
    notes += [_said("answers_waiting", language)] if row.waiting else []
    notes += [_said("answers_freed", language)] if row.freed else []
    notes += [_said("answers_conflict", language)] if row.conflict else []
    return heading, ", ".join(beginning_of(" ".join(text.split()))[:_MOST_OF_ANSWER] for text in notes)


def _shortened(groups: Sequence[tuple[str, list[str]]], language: str) -> Iterator[str]:
    """Yield each group as a paragraph, with as many of its people as there is room for."""
    room = _LONGEST_LIST // max(1, len(groups))
    for heading, people in groups:
        shown, length = 0, 0
        while shown < len(people) and length + len(people[shown]) < room:
            length += len(people[shown]) + 1
            shown += 1
        more = [_said("missed_more", language, count=len(people) - shown)] if shown < len(people) else []
        yield "\n".join([heading, *people[:shown], *more])


async def _people(
    deliveries: Deliveries, key: HistoryKey, tenant: str, wanted: RecipientFilter
) -> AsyncIterator[RecipientRecord]:
    cursor = None
    while True:
        page = await deliveries.recipients.page(key, tenant, wanted, cursor, _PAGE)
        for one in page.recipients:
            yield one
        cursor = page.next
        if cursor is None:
            return


def _name(one: RecipientRecord, known: str | None = None) -> str:
    return (one.name or known or str(one.id))[:_MOST_OF_NAME]


def _why(one: RecipientRecord) -> str:
    """Return the code of the sentence that explains why a person was not reached."""
    if any(outcome.status in OPEN for outcome in one.outcomes.values()):
        return "why_waiting"
    outcome = telling_outcome(one)
    if outcome is None:
        return "why_no_contact"
    return _WHY_REASONS.get(outcome.reason or "") or _WHY.get(outcome.status, "why_no_contact")


def _said(code: str, language: str, **values: Text | int) -> str:
    return in_language(sentence(code, **values), language)
