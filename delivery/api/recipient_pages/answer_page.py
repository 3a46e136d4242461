"""The page on which a recipient answers by a link, in Russian or English: GET and HEAD show it, a POST answers.

Everything from outside is escaped.
"""

import asyncio
import secrets
import tempfile
from datetime import tzinfo
from html import escape
from typing import IO
from urllib.parse import parse_qs

from aiohttp import BodyPartReader, web
from aiohttp.typedefs import Handler

from core.answers.links import LinkedQuestion
from core.answers.values import MOST_CHARACTERS, answer_text, wanted
from core.errors import Invalid, Refused
from core.model.clock import from_ms
from core.model.question import AnswerKind, AnswerState, GivenAnswer, Option, Question
from core.sentence import language_of, say
from core.updates.answer_words import result_text
from delivery.api.pages import HTML
from delivery.api.recipient_pages.linked_page import NAME, POST, filled, page_handler, short_name
from delivery.http.context import ApiContext
from delivery.http.receiving import body_too_large, check_content_length, receive
from delivery.http.responses.downloads import IN_MEMORY
from delivery.http.route import OpenRoute, Routes

_REFUSALS = frozenset(
    {"ANSWER_TOKEN_WRONG", "QUESTION_NOT_FOUND", "ANSWER_PERSON_DELETED", "OPTION_UNKNOWN", "RATE_EXCEEDED"}
)
"""Those with a sentence of their own."""
CORRECTED = frozenset({"ANSWER_MALFORMED", "FILE_EMPTY", "BODY_TOO_LARGE", "FILES_FULL"})
"""Refusals of an answer that are shown above the form, so that it can be corrected."""

PATH = "/a/{token}"
_FORM_LIMIT = 64 * 1024
"""Bytes."""
_FILE_LIMIT = 20 * 2**20
"""Bytes of the file of an answer."""


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
    locale = language_of(languages)
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


def show(context: ApiContext) -> Handler:
    """Return the handler that shows the page."""
    return page_handler(context, _shown, refused_page, outage_page)


def take(context: ApiContext) -> Handler:
    """Return the handler that counts an answer and shows what came of it."""
    return page_handler(context, _answered, refused_page, outage_page)


async def _shown(request: web.Request, context: ApiContext, token: str) -> str:
    linked = await context.services.core.answer_links.open(token)
    chosen = request.query.get("o", "")
    return page_of(linked, int(chosen) if chosen.isdecimal() else 0, _zone(context, linked))


async def _answered(request: web.Request, context: ApiContext, token: str) -> str:
    links = context.services.core.answer_links
    linked = await links.open(token)
    try:
        if linked.asked.question.kind is AnswerKind.FILE:
            answer = await _stored_file(request, context, linked)
        else:
            body = await receive(request, _FORM_LIMIT, context.options.body_timeout)
            answer = parse_qs(body.decode(errors="replace")).get("option", [_option_of_link(request, linked)])[0]
        given = await links.answer(token, answer, secrets.token_hex(9))
    except Refused as refusal:
        is_written = not linked.asked.question.has_options
        if refusal.code not in CORRECTED or not is_written:
            raise
        return page_of(linked, 0, _zone(context, linked), problem=refusal.code)
    linked = await links.open(token)
    return page_of(linked, 0, _zone(context, linked), given)


def _option_of_link(request: web.Request, linked: LinkedQuestion) -> str:
    """Return the key of the option that a posted link names: a button of a notification posts it as it is."""
    number, options = request.query.get("o", ""), linked.asked.question.options
    return options[int(number) - 1].key if number.isdecimal() and 0 < int(number) <= len(options) else ""


async def _stored_file(request: web.Request, context: ApiContext, linked: LinkedQuestion) -> str:
    """Store the file of a form; return its id. Raises Invalid ANSWER_MALFORMED, FILE_EMPTY, Conflict FILES_FULL,
    Refused BODY_TOO_LARGE, BODY_TOO_SLOW.
    """
    limit = min(context.options.file_limit, _FILE_LIMIT)
    if not request.content_type.startswith("multipart/"):
        raise Invalid("ANSWER_MALFORMED", "The form has no file.")
    check_content_length(request, limit + _FORM_LIMIT)
    with tempfile.SpooledTemporaryFile(IN_MEMORY) as file:
        async with asyncio.timeout(context.options.body_timeout.total_seconds() * 10):
            name = await _read_part(request, limit, file)
        stored = await context.services.uploads.store(linked.asked.tenant, name, file)
    return stored.id


async def _read_part(request: web.Request, limit: int, file: IO[bytes]) -> str:
    """Write the file of a form to `file`; return its name."""
    part = await (await request.multipart()).next()
    if not isinstance(part, BodyPartReader) or not part.filename:
        raise Invalid("ANSWER_MALFORMED", "The form has no file.")
    size = 0
    while piece := await part.read_chunk():
        size += len(piece)
        if size > limit:
            raise body_too_large(limit)
        file.write(piece)
    return part.filename


def _zone(context: ApiContext, linked: LinkedQuestion) -> tzinfo:
    return context.options.timezone_of(linked.asked.tenant)


ROUTES: Routes = (
    OpenRoute("GET", PATH, "The page on which a recipient answers a question; opening it changes nothing", show, HTML),
    OpenRoute("POST", PATH, "The answer of a recipient by a link", take, HTML),
)  # fmt: skip
