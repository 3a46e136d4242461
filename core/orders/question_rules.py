"""Rules for the question of a delivery. Pure.

Each refusal is an `Invalid` with a stable code and the path of the field.
"""

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime, timedelta

from core.errors import Invalid
from core.model.clock import from_ms, to_ms
from core.model.contacts.addresses import is_group
from core.model.delivery import Recipient, Strategy
from core.model.people import unknown_channel
from core.model.question import AnswerKind, Option, Question
from core.model.text.characters import folded, is_blank
from core.sentence import say, sentence

MAX_OPTIONS = 50
MAX_OPTION_TEXT = 100
"""Characters. A channel with shorter buttons does not show the answer, and its outcome says so."""

SHORTEST_WAIT, LONGEST_WAIT = timedelta(minutes=1), timedelta(days=30)
"""Before a question is asked again."""
MOST_REMINDERS = 10
MOST_CHILDREN = 1000
"""About whom guardians are asked."""
MOST_BUTTONS = 100
"""A token names an option by two digits."""
MOST_IN_WAVES = 1000
"""Recipients of a question that needs a number of confirmations."""

_MS = timedelta(milliseconds=1)
_READ = "read"


def options_of(kind: AnswerKind, given: Sequence[Option], locale: str) -> Sequence[Option]:
    """Return the options of a question: a confirmation has one of its own, whose text may be given."""
    if kind is AnswerKind.CONFIRM and not given:
        return [Option(_READ, say("confirmation", locale))]
    return given


def with_escalation(channels: Sequence[str], question: Question | None) -> Sequence[str]:
    """Return the channels of a delivery, those last to which its question escalates."""
    if not question or not question.escalate:
        return channels
    last = question.escalate.channels
    return [*(one for one in channels if one not in last), *last]


def faults_of_escalation(question: Question, channels: Sequence[str], known: Collection[str]) -> Iterator[Invalid]:
    """Emit the faults of the channels to which a question escalates. `channels`: those that the order names."""
    for number, channel in enumerate(question.escalate.channels if question.escalate else ()):
        path = f"answer.escalate.channels.{number}"
        if channel not in known:
            yield unknown_channel(channel, path, known)
        elif channel in channels:
            yield Invalid("ESCALATE_CHANNEL_REPEATED", f"The delivery goes to {channel!r} at once.", path)


def faults_of_need(question: Question, strategy: Strategy) -> Iterator[Invalid]:
    """Emit why a question cannot be asked wave by wave."""
    need = question.need
    if not need:
        return
    if not question.has_options:
        yield Invalid("NEED_NOT_ALLOWED", "Only a confirmation and a choice can be needed from people.", "answer.need")
    if strategy is Strategy.FIRST or question.escalate:
        detail = "People are asked wave by wave, in all channels at once: without `first` and `escalate`."
        yield Invalid("NEED_NOT_ALLOWED", detail, "answer.need")
    if not SHORTEST_WAIT // _MS <= need.every <= LONGEST_WAIT // _MS:
        yield Invalid("TOO_SOON_TO_ASK_AGAIN", "A minute to 30 days.", "answer.wave")


def check_guardians(question: Question, recipients: Sequence[Recipient]) -> None:
    """Check that guardians can answer a question for each child. Raises Invalid QUESTION_NOT_FOR_GUARDIANS,
    TOO_MANY_CHILDREN, TOO_MANY_OPTIONS.
    """
    is_limited = question.need or question.is_anonymous or any(one.places for one in question.options)
    if not question.has_options or is_limited:
        detail = (
            "Guardians answer for each child by a confirmation or a choice: named or hidden, without places and need."
        )
        raise Invalid("QUESTION_NOT_FOR_GUARDIANS", detail, "to")
    if any(is_group(name, one) for to in recipients for name, some in to.contacts.items() for one in some):
        raise Invalid("QUESTION_NOT_FOR_GUARDIANS", "A group chat has no guardians.", "to")
    if len({child.id for one in recipients for child in one.children}) > MOST_CHILDREN:
        raise Invalid("TOO_MANY_CHILDREN", f"At most {MOST_CHILDREN} children are asked about at once.", "recipients")
    if len(question.options) * max(len(one.children) for one in recipients) > MOST_BUTTONS:
        detail = f"A guardian would get more than {MOST_BUTTONS} options, for all of its children."
        raise Invalid("TOO_MANY_OPTIONS", detail, "answer.options")


def check_people(question: Question | None, people: int) -> None:
    """Check how many people a question is for. Raises Invalid TOO_MANY_IN_WAVES."""
    if question and question.need and people > MOST_IN_WAVES:
        detail = f"At most {MOST_IN_WAVES} people are asked wave by wave."
        raise Invalid("TOO_MANY_IN_WAVES", detail, "recipients")


def check_question(question: Question, deliver_at: datetime | None, now: datetime) -> None:
    """Check a question. Raises Invalid OPTIONS_MISSING, OPTIONS_NOT_ALLOWED, TOO_MANY_OPTIONS, OPTION_MALFORMED,
    OPTION_REPEATED, OPTION_TOO_LONG, CONSENT_MALFORMED, UNTIL_PAST, UNTIL_BEFORE_DUE,
    TOO_SOON_TO_ASK_AGAIN, TOO_LATE_TO_ASK_AGAIN.
    """
    _check_options(question)
    _check_anonymous(question)
    if question.consent and (question.kind is not AnswerKind.CHOICE or len(question.options) != 2):
        detail = "A consent is a choice of two options, and the second one refuses."
        raise Invalid("CONSENT_MALFORMED", detail, "answer.consent")
    _check_until(question, deliver_at, now)
    _check_asking_again(question, deliver_at or now)


def _check_options(question: Question) -> None:
    path, options = "answer.options", question.options
    most = {AnswerKind.CONFIRM: 1, AnswerKind.CHOICE: len(options)}.get(question.kind, 0)
    if len(options) > most:
        raise Invalid("OPTIONS_NOT_ALLOWED", "A confirmation has one button; only a choice has options.", path)
    if question.kind is AnswerKind.CHOICE and len(options) < 2:
        raise Invalid("OPTIONS_MISSING", "A choice has at least two options.", path)
    if len(options) > MAX_OPTIONS:
        raise Invalid("TOO_MANY_OPTIONS", sentence("most_options", most=MAX_OPTIONS), path)
    for number, one in enumerate(options):
        if is_blank(one.text) or is_blank(one.key):
            raise Invalid("OPTION_MALFORMED", "An option has a key and a text.", f"{path}.{number}")
        if len(one.text) > MAX_OPTION_TEXT:
            raise Invalid(
                "OPTION_TOO_LONG", sentence("most_option_text", most=MAX_OPTION_TEXT), f"{path}.{number}.text"
            )
    _check_differ(options, path)


def _check_differ(options: Sequence[Option], path: str) -> None:
    if len({one.key for one in options}) < len(options):
        raise Invalid("OPTION_REPEATED", "Two options have the same key.", path)
    if len({folded(one.text.strip()) for one in options}) < len(options):
        raise Invalid("OPTION_REPEATED", sentence("options_same_text"), path)


def _check_anonymous(question: Question) -> None:
    """Check that nothing of an anonymous question would join a person and its answer. Raises Invalid
    ANONYMOUS_NOT_ALLOWED.
    """
    has_places = any(one.places for one in question.options)
    if question.is_anonymous and (not question.has_options or has_places or question.need):
        detail = "Only a confirmation and a choice can be anonymous, without places and need."
        raise Invalid("ANONYMOUS_NOT_ALLOWED", detail, "answer.visible")


def _check_asking_again(question: Question, released: datetime) -> None:
    remind, escalate = question.remind or None, question.escalate or None
    open_for = question.until - to_ms(released) if question.until else LONGEST_WAIT // _MS
    for name, after in (("remind", remind and remind.after), ("escalate", escalate and escalate.after)):
        if after is not None and after >= open_for:
            detail = "Until then the question is closed, or more than 30 days have passed."
            raise Invalid("TOO_LATE_TO_ASK_AGAIN", detail, f"answer.{name}.after")
        if after is not None and after < SHORTEST_WAIT // _MS:
            raise Invalid("TOO_SOON_TO_ASK_AGAIN", "At least a minute.", f"answer.{name}.after")
    if remind and not SHORTEST_WAIT // _MS <= remind.every <= LONGEST_WAIT // _MS:
        raise Invalid("TOO_SOON_TO_ASK_AGAIN", "A minute to 30 days.", "answer.remind.every")


def _check_until(question: Question, deliver_at: datetime | None, now: datetime) -> None:
    if not question.until:
        return
    until = from_ms(question.until)
    if until <= now:
        raise Invalid("UNTIL_PAST", f"{until:%FT%TZ} has passed.", "answer.until")
    if deliver_at and until <= deliver_at:
        detail = f"The question would close before the delivery is due, at {deliver_at:%FT%TZ}."
        raise Invalid("UNTIL_BEFORE_DUE", detail, "answer.until")
