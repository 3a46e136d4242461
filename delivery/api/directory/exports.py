"""CSV exports of the directory, which the import reads again."""

from collections.abc import AsyncIterator, Sequence
from typing import Literal

from aiohttp import web
from msgspec import UNSET, UnsetType

from core.directory.csv_cells import FileKind
from core.directory.exporting import EXPORTED, Exporting
from core.directory.importing.russian import in_russian
from delivery.http.context import Request
from delivery.http.input.reading import part
from delivery.http.responses.csv import CONTENT_TYPE, ExportQuery, Rows, respond_csv
from delivery.http.responses.problems import invalid_field
from delivery.http.route import People, Route, Routes


class DirectoryExportQuery(ExportQuery, frozen=True):
    """The form of the file, and the language of its columns, roles and languages; the import reads both."""

    language: Literal["ru", "en"] | UnsetType = UNSET


ExportRequest = Request[None, DirectoryExportQuery]


async def export_directory(request: ExportRequest) -> web.StreamResponse:
    """Return all people, groups, … of the tenant."""
    name = part(request, "kind")
    if name not in EXPORTED:
        raise invalid_field("kind", "WRONG_VALUE", f"Allowed values: {', '.join(EXPORTED)}.")
    pages = Exporting(request.services.core.directory).pages(request.tenant, FileKind(name))
    if request.query.language == "ru" and not request.query.format:
        pages = _in_russian(FileKind(name), pages)
    return await respond_csv(request, f"{name}.csv", pages, for_excel=request.query.for_excel)


async def _in_russian(kind: FileKind, pages: AsyncIterator[Rows]) -> AsyncIterator[Rows]:
    columns: Sequence[str] = ()
    async for rows in pages:
        columns = columns or rows[0]
        yield in_russian(kind, rows, columns)


ROUTES: Routes = (
    Route("GET", "/v1/export/{kind}", "Export a part of the directory as CSV, which the import reads again", "manage",
          export_directory, 200, CONTENT_TYPE, query=DirectoryExportQuery, people=People.BY_SCOPE),
)  # fmt: skip
