"""The page on which a recipient answers by a link: GET and HEAD show it, a POST answers."""

import asyncio
import secrets
import tempfile
from datetime import tzinfo
from typing import IO
from urllib.parse import parse_qs

from aiohttp import BodyPartReader, web
from aiohttp.typedefs import Handler

from core.answers.links import LinkedQuestion
from core.errors import Invalid, Refused
from core.model.question import AnswerKind
from delivery.api.files import IN_MEMORY
from delivery.api.pages import HTML
from delivery.api.recipient_pages.answer_page import CORRECTED, outage_page, page_of, refused_page
from delivery.api.recipient_pages.linked_page import page_handler
from delivery.http.context import ApiContext
from delivery.http.input.receiving import body_too_large, check_content_length, receive
from delivery.http.route import OpenRoute, Routes

PATH = "/a/{token}"
_FORM_LIMIT = 64 * 1024
"""Bytes."""
_FILE_LIMIT = 20 * 2**20
"""Bytes of the file of an answer."""


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
    return context.options.tenant_timezones.get(linked.asked.tenant, context.options.timezone)


ROUTES: Routes = (
    OpenRoute("GET", PATH, "The page on which a recipient answers a question; opening it changes nothing", show, HTML),
    OpenRoute("POST", PATH, "The answer of a recipient by a link", take, HTML),
)  # fmt: skip
