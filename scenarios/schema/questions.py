"""The question of an action `ask`, and whether what a person writes answers it (C-95). Pure.

The type of the answer is that of the field `answer`, or of the variable in `save`, or a choice if there are `options`,
or a text. A choice is answered by its button, its words or its number.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta, tzinfo

from msgspec import Struct

from core.model.contacts.addresses import e164
from core.model.text.characters import folded
from scenarios.bot import Bot
from scenarios.bot.button_text import normalise
from scenarios.bot.data import Data
from scenarios.bot.variables import Variable
from scenarios.placeholders.values import as_text, is_list, is_true
from scenarios.schema.validator import Rule, complaint
from scenarios.schema.variables import Change, VariableFault, change_of, fitted
from scenarios.words import SentenceError, sentence

ANSWERS = ("text", "number", "date", "choice", "list", "contact", "photo")
EVENTS = ("text", "callback")
"""The kinds of events that may answer a question."""

ASKING = ("ask", "choose_addressees")
"""The actions that wait for a person."""

DEFAULT_TIMEOUT, DEFAULT_ATTEMPTS = timedelta(days=1), 3

Event = Mapping[str, Data]


class NoAnswer(SentenceError):
    """The text of the person does not answer the question."""


class AskedQuestion(Struct, frozen=True):
    """One question. `save`: the variable for the answer, "" for none. `form`: the form in whose table it stands, under
    the name `field`, in the person's row `row`. `remind`: after how long without an answer it is asked again, None for
    never. `page`: how many options a page has, 0 for all.
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
        return not _option(question, as_text(event.get("callback_data")))
    return as_text(event.get("event_text")).strip().startswith("/")


def _of_text(question: AskedQuestion, event: Event, zone: tzinfo | None) -> Data:
    pressed = as_text(event.get("callback_data"))
    text = (_option(question, pressed) if pressed else "") or _written(event)
    if not text:
        raise NoAnswer(sentence("no_text"))
    return fitted(text, Variable(question.answer, question.options), zone)


def _choice(question: AskedQuestion, event: Event, zone: tzinfo | None) -> str:
    found = _option(question, as_text(event.get("callback_data")) or _written(event))
    if not found:
        raise NoAnswer(sentence("is_none_of", words=", ".join(question.options)))
    return found


def _option(question: AskedQuestion, text: str) -> str:
    """Return the option that a text means, by its words or its number; "" if it means none."""
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 4 else 0
    by_words = (one for one in question.options if text and folded(text) == folded(one))
    by_button = (one for one in question.options if normalise(text) and normalise(text) == normalise(one))
    by_number = question.options[number - 1] if 0 < number <= len(question.options) else ""
    return next(by_words, "") or next(by_button, "") or by_number


def _contact(question: AskedQuestion, event: Event, zone: tzinfo | None) -> str:
    """Return a telephone number: of the person's own contact that is shared, or as it is written."""
    contacts = _attachments(event, "contact")
    if contacts and not any(is_true(one.get("is_own")) for one in contacts):
        raise NoAnswer("it is the contact of somebody else")
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
