"""CSV exports of the directory, which the import reads again."""

from aiohttp import web

from core.directory.csv_cells import FileKind
from core.directory.exporting import EXPORTED, Exporting
from delivery.http.context import Request
from delivery.http.input.reading import part
from delivery.http.responses.csv import CONTENT_TYPE, ExportQuery, respond_csv
from delivery.http.responses.problems import invalid_field
from delivery.http.route import People, Route, Routes

ExportRequest = Request[None, ExportQuery]


async def export_directory(request: ExportRequest) -> web.StreamResponse:
    """Return all people, groups, … of the tenant."""
    name = part(request, "kind")
    if name not in EXPORTED:
        raise invalid_field("kind", "WRONG_VALUE", f"Allowed values: {', '.join(EXPORTED)}.")
    pages = Exporting(request.services.core.directory).pages(request.tenant, FileKind(name))
    return await respond_csv(request, f"{name}.csv", pages, for_excel=request.query.for_excel)


ROUTES: Routes = (
    Route("GET", "/v1/export/{kind}", "Export a part of the directory as CSV, which the import reads again", "manage",
          export_directory, 200, CONTENT_TYPE, query=ExportQuery, people=People.BY_SCOPE),
)  # fmt: skip
