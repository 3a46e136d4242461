"""The page on which a recipient answers by a link, in Russian or English. Everything from outside is escaped. Pure.

Called by `delivery.api.recipient_pages.answering`.
"""

from datetime import tzinfo
from html import escape

from core.answers.links import LinkedQuestion
from core.answers.values import MOST_CHARACTERS, answer_text, wanted
from core.errors import Refused
from core.model.clock import from_ms
from core.model.question import AnswerKind, AnswerState, GivenAnswer, Option, Question
from core.sentence import language_of, say
from core.updates.answer_words import result_text
from delivery.api.recipient_pages.linked_page import NAME, POST, filled, short_name

_REFUSALS = frozenset(
    {"ANSWER_TOKEN_WRONG", "QUESTION_NOT_FOUND", "ANSWER_PERSON_DELETED", "OPTION_UNKNOWN", "RATE_EXCEEDED"}
)
"""Those with a sentence of their own."""
CORRECTED = frozenset({"ANSWER_MALFORMED", "FILE_EMPTY", "BODY_TOO_LARGE", "FILES_FULL"})
"""Refusals of an answer that are shown above the form, so that it can be corrected."""


def page_of(
    linked: LinkedQuestion, chosen: int, zone: tzinfo, given: GivenAnswer | None = None, problem: str = ""
) -> str:
    """Return the page of a question. `chosen`: the number of the option of the link, from 1; `given`: what was just
    answered; `problem`: why it was not, one of `CORRECTED`.
    """
    locale = language_of(linked.asked.question.locale)
    name = short_name(linked.asked.recipient, "answer_page_number", locale)
    parts = [
        f"<h1>{_said('title', locale)}</h1>",
        f'<p class="text">{escape(linked.asked.text)}</p>' if linked.asked.text.strip() else "",
        f'<p class="quiet">{_said("as", locale, name=NAME).replace(NAME, name)}</p>',
        f'<p class="good" role="status">{escape(result_text(given))}</p>' if given else _state(linked, locale),
        f'<p class="bad" role="alert">{escape(_problem(linked, locale, problem))}</p>' if problem else "",
        _form(linked, locale, chosen) if linked.is_open else "",
        _ending(linked, locale, zone),
        f'<p class="quiet">{_said("anonymous", locale)}</p>' if linked.asked.question.is_anonymous else "",
    ]
    return filled(locale, say("answer_page_title", locale), parts)


def _said(text: str, locale: str, **values: object) -> str:
    """Return a text of the page as HTML."""
    return escape(say(f"answer_page_{text}", locale, **values))


def _problem(linked: LinkedQuestion, locale: str, problem: str) -> str:
    if problem == "ANSWER_MALFORMED":
        return wanted(linked.asked.question)
    return say(f"answer_page_{problem.lower()}", locale)


def refused_page(refusal: Refused, languages: str) -> str:
    """Return the page that says why a link does not work. `languages`: Accept-Language."""
    return _sentence(refusal.code.lower() if refusal.code in _REFUSALS else "outage", languages)


def outage_page(languages: str) -> str:
    return _sentence("outage", languages)


def _sentence(name: str, languages: str) -> str:
    locale = language_of(languages.strip())
    parts = [f"<h1>{_said('title', locale)}</h1>", f"<p>{_said(name, locale)}</p>"]
    return filled(locale, say("answer_page_title", locale), parts)


def _state(linked: LinkedQuestion, locale: str) -> str:
    row, question = linked.row, linked.asked.question
    if linked.chosen:
        said = ", ".join(one.text for one in question.options if one.key in linked.chosen)
        return f'<p class="good">{_said("given", locale, answer=said)}</p>'
    if row is None:
        return f"<p>{_said('silent', locale)}</p>" if linked.is_closed else ""
    if question.is_anonymous:
        return f'<p class="good">{_said("anonymous_given", locale)}</p>'
    name = "confirmed" if question.kind is AnswerKind.CONFIRM else "given"
    late = f" {_said('late', locale)}" if row.state is AnswerState.LATE else ""
    return f'<p class="good">{_said(name, locale, answer=answer_text(question, row))}{late}</p>'


def _ending(linked: LinkedQuestion, locale: str, zone: tzinfo) -> str:
    """Return what else there is to know about the time."""
    if linked.is_closed:
        return f'<p class="quiet">{_said("closed", locale)}</p>'
    if not linked.is_open:
        return f'<p class="quiet">{_said("final", locale)}</p>'
    until = linked.asked.question.until
    return f'<p class="quiet">{_said("until", locale, time=_time(until, zone))}</p>' if until else ""


def _time(ms: int, zone: tzinfo) -> str:
    return f"{from_ms(ms).astimezone(zone):%d.%m.%Y %H:%M}"


def _form(linked: LinkedQuestion, locale: str, chosen: int) -> str:
    question, row = linked.asked.question, linked.row
    if question.kind is AnswerKind.CONFIRM:
        if row is not None:
            return ""
        (option,) = question.options
        return POST.format(f'<button name="option" value="{escape(option.key)}">{escape(option.text)}</button>')
    button = _said("change" if row else "answer", locale)
    known = row.value if row else ""
    if not question.has_options:
        return _written_form(question, (known or row.text) if row else "", locale, button)
    marked = question.options[chosen - 1].key if 0 < chosen <= len(question.options) else known
    options = "\n".join(_radio(one, is_marked=one.key == marked) for one in question.options)
    choice = f"<fieldset><legend>{_said('choose', locale)}</legend>\n{options}\n</fieldset>"
    return POST.format(f"{choice}<button>{button}</button>")


def _written_form(question: Question, known: str, locale: str, button: str) -> str:
    """Return the form of a text, number, date or file, with what was answered before."""
    label, known = _said("answer_label", locale), escape(known)
    common = 'id="answer" name="option" required aria-describedby="wanted"'
    match question.kind:
        case AnswerKind.TEXT:
            field = f'<textarea {common} rows="4" maxlength="{MOST_CHARACTERS}">{known}</textarea>'
        case AnswerKind.NUMBER:
            field = f'<input {common} class="wide" inputmode="decimal" maxlength="20" value="{known}">'
        case AnswerKind.DATE:
            field = f'<input {common} class="wide" type="date" value="{known}">'
        case _:
            field = f'<input {common} class="wide" type="file">'
    hint = _said("file_hint", locale) if question.kind is AnswerKind.FILE else escape(wanted(question))
    lines = f'<p><label class="plain" for="answer">{label}</label>{field}</p><p class="quiet" id="wanted">{hint}</p>'
    form = '<form method="post" enctype="multipart/form-data">{}</form>' if question.kind is AnswerKind.FILE else POST
    return form.format(f"{lines}<button>{button}</button>")


def _radio(option: Option, *, is_marked: bool) -> str:
    value, checked = escape(option.key), " checked" if is_marked else ""
    button = f'<input type="radio" name="option" required value="{value}"{checked}>'
    return f"<label>{button}{escape(option.text)}</label>"
