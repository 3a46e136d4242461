"""The forms that people have filled in for the bots: which there are, and what was answered."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Annotated

from aiohttp import web
from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import replace

from core.errors import NotFound
from core.model.field_types import whole
from core.model.json_form import compact_json
from delivery.api.bots.runs import PersonName, name_in_directory
from delivery.http.context import ApiRequest, Request, Response
from delivery.http.fields import RequestModel
from delivery.http.responses.downloads import CONTENT_TYPE, ExportQuery, Rows, respond_csv
from delivery.http.route import NoParameters, Route, Routes
from scenarios.stores.forms import FormRow, Forms, FormTable, Remembered


class FormQuery(RequestModel, frozen=True):
    """The page of a form."""

    cursor: Annotated[str, Meta(pattern=whole("[0-9]{1,9}(-[0-9]{1,9})*"))] | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=1000, extra_json_schema={"default": 1000})] | UnsetType = UNSET


class PersonQuery(RequestModel, frozen=True):
    """The person: `<channel>:<user_id>`."""

    person: PersonName


class FormList(Struct):
    """The names of the forms with answers."""

    forms: Sequence[str]


_PAGE = 1000


async def list_all(request: Request[None, NoParameters]) -> Response:
    """Return the names of the forms with answers."""
    return Response(FormList(await _reader(request).names(request.tenant)))


async def show(request: Request[None, FormQuery]) -> Response:
    """Return a page of a form as a table. Raises NotFound FORM_NOT_FOUND."""
    name, cursor = request.http.match_info["name"], request.query.cursor or ""
    table = await _page(request, name, cursor, request.query.limit or _PAGE)
    names = await asyncio.gather(*(name_in_directory(request, row.person) for row in table.rows))
    rows = [replace(row, name=found) for row, found in zip(table.rows, names, strict=True)]
    return Response(replace(table, rows=rows))


async def export(request: Request[None, ExportQuery]) -> web.StreamResponse:
    """Return all answers to a form as CSV. Raises NotFound FORM_NOT_FOUND."""
    name = request.http.match_info["name"]
    tables = [await _page(request, name, "", _PAGE)]
    while following := tables[-1].next:
        tables.append(await _page(request, name, following, _PAGE))
    return await respond_csv(request, f"{name}.csv", _csv_pages(tables), for_excel=request.query.for_excel)


async def _csv_pages(tables: Sequence[FormTable]) -> AsyncIterator[Rows]:
    """Yield the header and the rows. A page has the columns of its own rows only, so all are read before the first."""
    columns = list(dict.fromkeys(name for table in tables for name in table.columns))
    yield [["person", "first", "last", *columns]]
    for table in tables:
        yield [_cells(row, columns) for row in table.rows]


def _cells(row: FormRow, columns: Sequence[str]) -> list[str]:
    return [row.person, row.first, row.last, *(_cell(row.answers.get(name)) for name in columns)]


def _cell(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else compact_json(value)


async def _page(request: ApiRequest, name: str, cursor: str, limit: int) -> FormTable:
    """Return a page of a form. Raises NotFound FORM_NOT_FOUND."""
    table = await _reader(request).table(request.tenant, name, cursor, limit)
    if not table.rows and not cursor and table.next is None:
        raise NotFound("FORM_NOT_FOUND", f"There are no answers to a form {name!r}.")
    return table


async def of_person(request: Request[None, PersonQuery]) -> Response:
    """Return what the bot remembers of a person."""
    return Response(await _reader(request).of_person(request.tenant, request.query.person))


def _reader(request: ApiRequest) -> Forms:
    reader = request.services.forms
    if reader is None:
        raise NotFound("FORM_NOT_FOUND", "This installation has no scenarios.")
    return reader


ROUTES: Routes = (
    Route("GET", "/v1/forms", "List the forms that people have filled in", "read", list_all, 200, FormList),
    Route("GET", "/v1/forms/{name}", "The answers to a form as a table, a row for each person", "read", show, 200,
          FormTable, query=FormQuery),
    Route("GET", "/v1/forms/{name}/answers.csv", "Export the answers to a form as CSV", "read", export, 200,
          CONTENT_TYPE, query=ExportQuery),
    Route("GET", "/v1/variables", "What the bot remembers of a person: variables, and answers to forms", "read",
          of_person, 200, Remembered, query=PersonQuery),
)  # fmt: skip
