"""The forms that people have filled in for the bots: which there are, and what was answered."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

from aiohttp import web

from core.errors import NotFound
from core.model.compact_json import compact_json
from delivery.http.context import Request, Response
from delivery.http.responses.csv import Rows, respond_csv
from delivery.http.route import NoParameters
from delivery.schemas.bots import forms
from delivery.schemas.directory.exports import ExportQuery
from delivery.services import FormReader

_PAGE = 1000


async def list_all(request: Request[None, NoParameters]) -> Response:
    """Return the names of the forms with answers."""
    return Response(forms.FormList(await _reader(request).names(request.tenant)))


async def show(request: Request[None, forms.FormQuery]) -> Response:
    """Return a page of a form as a table. Raises NotFound FORM_NOT_FOUND."""
    name, cursor = request.http.match_info["name"], request.query.cursor or ""
    return Response(forms.FormTable.of(await _page(request, name, cursor, request.query.limit or _PAGE)))


async def export(request: Request[None, ExportQuery]) -> web.StreamResponse:
    """Return all answers to a form as CSV. Raises NotFound FORM_NOT_FOUND."""
    name = request.http.match_info["name"]
    tables = [forms.FormTable.of(await _page(request, name, "", _PAGE))]
    while following := tables[-1].next:
        tables.append(forms.FormTable.of(await _page(request, name, following, _PAGE)))
    return await respond_csv(request, f"{name}.csv", _csv_pages(tables), for_excel=request.query.for_excel)


async def _csv_pages(tables: Sequence[forms.FormTable]) -> AsyncIterator[Rows]:
    """Yield the header and the rows. A page has the columns of its own rows only, so all are read before the first."""
    columns = list(dict.fromkeys(name for table in tables for name in table.columns))
    yield [["person", "first", "last", *columns]]
    for table in tables:
        yield [_cells(row, columns) for row in table.rows]


def _cells(row: forms.FormRow, columns: Sequence[str]) -> list[str]:
    return [row.person, row.first, row.last, *(_cell(row.answers.get(name)) for name in columns)]


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else compact_json(value)


async def _page(request: Request[Any, Any], name: str, cursor: str, limit: int) -> Any:
    """Return a page of a form. Raises NotFound FORM_NOT_FOUND."""
    table = await _reader(request).table(request.tenant, name, cursor, limit)
    if not table.rows and not cursor and table.next is None:
        raise NotFound("FORM_NOT_FOUND", f"There are no answers to a form {name!r}.")
    return table


async def of_person(request: Request[None, forms.PersonQuery]) -> Response:
    """Return what the bot remembers of a person."""
    return Response(forms.Remembered(**await _reader(request).of_person(request.tenant, request.query.person)))


def _reader(request: Request[Any, Any]) -> FormReader:
    reader = request.services.forms
    if reader is None:
        raise NotFound("FORM_NOT_FOUND", "This installation has no scenarios.")
    return reader
