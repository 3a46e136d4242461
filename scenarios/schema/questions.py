"""The question of an action `ask`, and whether what a person writes answers it (C-95). Pure.

The type of the answer is that of the field `answer`, or of the variable in `save`, or a choice if there are `options`,
or a text. A choice is answered by its button, its words or its number. The options may be days and times, computed
when they are shown: of `dates: {from: 1d, to: 14d}`, or of `times: {from: 8:00, to: 20:00, every: 2h}`.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta, tzinfo

from msgspec import Struct, structs

from core.errors import Invalid
from core.model.contacts.addresses import e164
from core.model.text.characters import folded
from scenarios.bot import Bot
from scenarios.bot.button_data import normalise, option_data
from scenarios.bot.data import Data, MapNode, Node, Scalar, describe
from scenarios.bot.event_fields import Event
from scenarios.bot.model import Variable
from scenarios.bot.times import ScheduleFault, read_clock, read_duration
from scenarios.placeholders.values import as_moment, as_text, is_list, is_true
from scenarios.schema.rules import Rule, complaint
from scenarios.schema.types import Complaint, Type, has_placeholder
from scenarios.schema.variables import Change, VariableFault, change_of, fitted
from scenarios.words import SentenceError, Text, sentence

ANSWERS = ("text", "number", "date", "choice", "list", "contact", "photo")
EVENTS = ("text", "callback")
"""The kinds of events that may answer a question."""

ASKING = ("ask", "choose_addressees")
"""The actions that wait for a person."""

DEFAULT_TIMEOUT, DEFAULT_ATTEMPTS = timedelta(days=1), 3


class NoAnswer(SentenceError):
    """The text of the person does not answer the question."""


class AskedQuestion(Struct, frozen=True):
    """One question. `save`: the variable for the answer, "" for none. `form`: the form in whose table it stands, under
    the name `field`, in the person's row `row`. `remind`: after how long without an answer it is asked again, None for
    never. `page`: how many options a page has, 0 for all; `columns`: how many stand in a row of buttons. `values`: what
    the options stand for, in their order; empty if for themselves. `over`: options that a question asked before may
    have had, and that are past. `buttons`: the texts of its own buttons that answer as if they were written.
    """

    answer: str
    options: tuple[str, ...]
    rules: Sequence[Data]
    hint: str
    attempts: int
    timeout: timedelta
    remind: timedelta | None
    save: str
    form: str
    field: str
    page: int
    row: str = ""
    columns: int = 1
    values: tuple[str, ...] = ()
    over: tuple[str, ...] = ()
    buttons: tuple[str, ...] = ()


class TimeChoices(Struct, frozen=True):
    """Days or times to choose from. `values`: what the options stand for. `over`: as in AskedQuestion."""

    options: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    page: int = 0
    over: tuple[str, ...] = ()


OVER = TimeChoices(("–",), ("",))
"""No day or time is left, perhaps since the question was asked: nothing answers it any more."""
MOST_CHOICES = 366
_PAGE_OF_DAYS, _PAGE_OF_TIMES = 7, 8
TIME_COLUMNS = 4
_DAYS = {"en": ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"), "ru": ("Пн", "Вт", "Ср", "Чт", "Пт", "Сб", "Вс")}


def days_of(dates: Mapping[str, Data], now: datetime, locale: str) -> TimeChoices:
    """Return the days from `from`, by default today, to `to`: days, or durations from now; `OVER` if they are over.
    Raises Invalid.
    """
    first, last = (_day(dates.get(name), now, "dates") for name in ("from", "to"))
    count = (last - first).days + 1
    if count < 1:
        return OVER
    if count > MOST_CHOICES:
        raise Invalid("FIELD_INVALID", sentence("choices_from_to", most=MOST_CHOICES), "dates")
    found = [first + timedelta(days=n) for n in range(count)]
    labels, over = (
        tuple(f"{_DAYS[locale][one.weekday()]} {one:%d.%m}" for one in days)
        for days in (found, [first - timedelta(days=n) for n in range(1, 8)])
    )
    return TimeChoices(labels, tuple(one.isoformat() for one in found), _PAGE_OF_DAYS, over)


def _day(written: Data, now: datetime, field: str) -> date:
    if written in (None, "", "today"):
        return now.date()
    if (span := read_duration(written)) is not None:
        return (now + span).date()
    if (found := as_moment(written, now.tzinfo)) is None:
        raise Invalid("FIELD_INVALID", sentence("no_day_such", found=as_text(written)), field)
    return found.date()


def times_of(times: Mapping[str, Data], now: datetime) -> TimeChoices:
    """Return the times of day from `from` to `to`, `every` so often, by default each hour; of a `day` only those that
    are not over, `OVER` if all are. Raises Invalid.
    """
    try:
        first, last = (read_clock(as_text(times.get(name))) for name in ("from", "to"))
    except ScheduleFault as fault:
        raise Invalid("FIELD_INVALID", fault.said, "times") from None
    every = read_duration(times.get("every") or "1h")
    minutes = int(every.total_seconds() // 60) if every else 0
    if minutes < 1 or last < first or (last - first) // minutes >= MOST_CHOICES:
        raise Invalid("FIELD_INVALID", sentence("choices_from_to", most=MOST_CHOICES), "times")
    now_at = _minutes_over(times["day"], now) if "day" in times else -1
    at_all = range(first, last + 1, minutes)
    found, over = (
        tuple(f"{at // 60}:{at % 60:02}" for at in at_all if (at > now_at) is comes) for comes in (True, False)
    )
    return TimeChoices(found, found, _PAGE_OF_TIMES, over) if found else structs.replace(OVER, over=over)


def _minutes_over(written: Data, now: datetime) -> int:
    """Return how many minutes of a day have begun; -1 of a day that comes."""
    day = _day(written, now, "times")
    if day == now.date():
        return now.hour * 60 + now.minute
    return -1 if day > now.date() else 24 * 60


def _range(
    names: Mapping[str, Callable[[Scalar], bool]], example: Text, choices: Callable[[Mapping[str, Data]], bool]
) -> Type:
    """Return a mapping of `from`, `to` and perhaps more, each of which is right by itself or has a placeholder.
    `choices`: whether they have any together; raises Invalid if they have too many.
    """

    def complaints(node: Node) -> Iterator[Complaint]:
        if not isinstance(node, MapNode):
            yield node, sentence("must_be", wanted=example, found=describe(node))
            return
        wrong = False
        for key, value in node.pairs:
            is_known = key.text in names and isinstance(value, Scalar)
            if not is_known or not (has_placeholder(value) or (isinstance(value, Scalar) and names[key.text](value))):
                wrong = True
                yield key, sentence("must_be", wanted=example, found=f"{key.text}: {describe(value)}")
        if node.get("to") is None:
            yield node, sentence("must_be", wanted=example, found=describe(node))
        elif not wrong and not any(has_placeholder(value) for _, value in node.pairs):
            yield from _together(node, choices)

    return Type(
        example,
        {"type": "object", "properties": {name: {"type": "string"} for name in names}},
        complaints,
        needed=tuple(names),
    )


def _together(node: MapNode, choices: Callable[[Mapping[str, Data]], bool]) -> Iterator[Complaint]:
    try:
        if not choices({key.text: value.text for key, value in node.pairs if isinstance(value, Scalar)}):
            yield node, sentence("choices_from_to", most=MOST_CHOICES)
    except Invalid as refusal:
        yield node, refusal.said


def _has_days(dates: Mapping[str, Data]) -> bool:
    """Return whether there is a day in the range; also where that depends on the day on which it is asked."""
    now = datetime.now(UTC)
    is_fixed = {name: as_moment(dates.get(name), UTC) is not None for name in ("from", "to")}
    return is_fixed["from"] != is_fixed["to"] or days_of(dates, now, "en") is not OVER


def _has_times(times: Mapping[str, Data]) -> bool:
    return bool(times_of({name: value for name, value in times.items() if name != "day"}, datetime.now(UTC)).options)


def _is_day(node: Scalar) -> bool:
    return node.text == "today" or read_duration(node.text) is not None or as_moment(node.text, UTC) is not None


def _is_time(node: Scalar) -> bool:
    return bool(re.fullmatch(r"([01]?\d|2[0-3]):[0-5]\d", node.text)) or read_duration(node.text) is not None


DATES = _range(dict.fromkeys(("from", "to"), _is_day), "{from: today, to: 14d}", _has_days)
TIMES = _range(
    {**dict.fromkeys(("from", "to", "every"), _is_time), "day": _is_day},
    "{from: 8:00, to: 20:00, every: 2h}",
    _has_times,
)


def read_answer(question: AskedQuestion, event: Event, zone: tzinfo | None) -> Data:
    """Return the answer in an event. Raises NoAnswer."""
    try:
        value = _READ.get(question.answer, _of_text)(question, event, zone)
    except VariableFault as fault:
        raise NoAnswer(fault.said) from None
    for rule in question.rules:
        if reason := complaint(rule, value, _cannot_ask):
            raise NoAnswer(reason)
    return value


def change_by(question: AskedQuestion, value: Data, bot: Bot, zone: tzinfo | None) -> Change | None:
    """Return what the answer does to the variable in `save`; None if there is none. Raises NoAnswer."""
    if not question.save:
        return None
    try:
        return change_of(question.save, value, bot.declared, zone)
    except VariableFault as fault:
        raise NoAnswer(fault.said) from None


def interrupts(question: AskedQuestion, event: Event) -> bool:
    """Return whether an event may begin something else although a question is open: a command, or the press of a button
    that is not one of the question's.
    """
    if event.get("kind") == "callback" or event.get("callback_data") is not None:
        pressed = as_text(event.get("callback_data"))
        return not (_option(question, pressed) or _labelled((*question.over, *question.buttons), pressed))
    return as_text(event.get("event_text")).strip().startswith("/")


def _of_text(question: AskedQuestion, event: Event, zone: tzinfo | None) -> Data:
    pressed = as_text(event.get("callback_data"))
    text = (pressed and (_option(question, pressed) or _labelled(question.buttons, pressed))) or _written(event)
    if not text:
        raise NoAnswer(sentence("no_text"))
    return fitted(text, Variable(question.answer, question.options), zone)


def _choice(question: AskedQuestion, event: Event, zone: tzinfo | None) -> str:
    text = as_text(event.get("callback_data")) or _written(event)
    found = _option(question, text) or _day_written(question, text, zone)
    if not found:
        raise NoAnswer(sentence("is_none_of", words=", ".join(question.options)))
    return question.values[question.options.index(found)] if question.values else found


def _day_written(question: AskedQuestion, text: str, zone: tzinfo | None) -> str:
    """Return the option that a date stands for which the person has written; "" for none."""
    moment = as_moment(text, zone) if question.values else None
    day = moment.date().isoformat() if moment else ""
    return question.options[question.values.index(day)] if day in question.values else ""


def _option(question: AskedQuestion, text: str) -> str:
    """Return the option that a text means, by its words or its number; "" if it means none."""
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 4 else 0
    by_number = question.options[number - 1] if 0 < number <= len(question.options) else ""
    return _labelled(question.options, text) or by_number


def _labelled(options: Sequence[str], text: str) -> str:
    """Return the option with these words, or the data of whose button they are; "" for none."""
    by_own_data = (one for one, data in option_data(options).items() if text == data)
    by_words = (one for one in options if text and folded(text) == folded(one))
    by_button = (one for one in options if normalise(text) and normalise(text) == normalise(one))
    return next(by_own_data, "") or next(by_words, "") or next(by_button, "")


def _contact(question: AskedQuestion, event: Event, zone: tzinfo | None) -> str:
    """Return a telephone number: of the person's own contact that is shared, or as it is written."""
    contacts = _attachments(event, "contact")
    if contacts and not any(is_true(one.get("is_own")) for one in contacts):
        raise NoAnswer(sentence("contact_of_other"))
    shared = [as_text(one.get("phone")) for one in contacts if is_true(one.get("is_own"))]
    number = e164(next((one for one in shared if one), "") or _written(event))
    if not number:
        raise NoAnswer(sentence("not_telephone_number"))
    return number


def _photo(question: AskedQuestion, event: Event, zone: tzinfo | None) -> str:
    found = [as_text(one.get("file_id")) for one in _attachments(event, "photo")]
    if not found:
        raise NoAnswer(sentence("no_photo"))
    return found[0]


_READ: Mapping[str, Callable[[AskedQuestion, Event, tzinfo | None], Data]] = {
    **dict.fromkeys(("text", "number", "date", "list"), _of_text),
    "choice": _choice,
    "contact": _contact,
    "photo": _photo,
}


def _attachments(event: Event, kind: str) -> list[Mapping[str, Data]]:
    given = event.get("attachments")
    return [one for one in (given if is_list(given) else ()) if isinstance(one, Mapping) and one.get("type") == kind]


def _written(event: Event) -> str:
    return as_text(event.get("event_text") or event.get("callback_data")).strip()


def _cannot_ask(_: Rule) -> bool:
    return False
