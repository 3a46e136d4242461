"""The forms that people have filled in for the bots: which there are, and what was answered."""

from typing import Any

from core.errors import NotFound
from delivery.http.context import Request, Response
from delivery.http.route import NoParameters
from delivery.schemas.bots import forms
from delivery.services import FormReader


async def list_all(request: Request[None, NoParameters]) -> Response:
    """Return the names of the forms with answers."""
    return Response(forms.FormList(await _reader(request).names(request.tenant)))


async def show(request: Request[None, forms.FormQuery]) -> Response:
    """Return a page of a form as a table. Raises NotFound FORM_NOT_FOUND."""
    name, begin = request.http.match_info["name"], int(request.query.cursor or 0)
    table = await _reader(request).table(request.tenant, name, begin, request.query.limit or 1000)
    if not table.rows and not begin and table.next is None:
        raise NotFound("FORM_NOT_FOUND", f"There are no answers to a form {name!r}.")
    return Response(forms.FormTable.of(table))


async def of_person(request: Request[None, forms.PersonQuery]) -> Response:
    """Return what the bot remembers of a person."""
    return Response(forms.Remembered(**await _reader(request).of_person(request.tenant, request.query.person)))


def _reader(request: Request[Any, Any]) -> FormReader:
    reader = request.services.forms
    if reader is None:
        raise NotFound("FORM_NOT_FOUND", "This installation has no scenarios.")
    return reader
