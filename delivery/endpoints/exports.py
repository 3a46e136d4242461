"""CSV exports: the directory, which the import reads again, and the outcomes of a delivery."""

from collections.abc import AsyncIterator, Iterator

from aiohttp import web

from core.directory.csv_cells import FileKind
from core.directory.exporting import EXPORTED, Exporting
from core.model.history import OutcomeRecord, RecipientRecord
from delivery.endpoints.directory.reading import part
from delivery.http.context import Request
from delivery.http.responses.csv import Rows, respond_csv
from delivery.http.responses.problems import invalid_field
from delivery.schemas.directory.exports import ExportQuery, OutcomeExportQuery
from delivery.schemas.fields.timestamps import write_optional_time

_OUTCOME_COLUMNS = (
    "recipient",
    "name",
    "origin",
    "channel",
    "status",
    "reason",
    "at",
    "attempts",
    "reference",
    "not_shown",
)

ExportRequest = Request[None, ExportQuery]
OutcomeExportRequest = Request[None, OutcomeExportQuery]


async def export_directory(request: ExportRequest) -> web.StreamResponse:
    """Return all people, groups, … of the tenant."""
    name = part(request, "kind")
    if name not in EXPORTED:
        raise invalid_field("kind", "WRONG_VALUE", f"Allowed values: {', '.join(EXPORTED)}.")
    pages = Exporting(request.services.core.directory).pages(request.tenant, FileKind(name))
    return await respond_csv(request, f"{name}.csv", pages, for_excel=request.query.for_excel)


async def export_recipients(request: OutcomeExportRequest) -> web.StreamResponse:
    """Return one row for each recipient and channel of a delivery, those not reached first."""
    name = f"{request.history_key.id}.csv"
    return await respond_csv(request, name, _outcome_pages(request), for_excel=request.query.for_excel)


async def _outcome_pages(request: OutcomeExportRequest) -> AsyncIterator[Rows]:
    """Yield pages of outcomes. The header comes with the first page, which is refused if there is no such delivery."""
    rows: list[tuple[str, ...]] = [_OUTCOME_COLUMNS]
    recipients, wanted = request.services.core.deliveries.recipients, request.query.wanted()
    async for page in recipients.all(request.history_key, request.tenant, wanted):
        yield rows + [row for recipient in page.recipients for row in _outcome_rows(recipient)]
        rows = []


def _outcome_rows(recipient: RecipientRecord) -> Iterator[tuple[str, ...]]:
    person = (str(recipient.id), recipient.name or "", ", ".join(recipient.origin))
    for channel, outcome in recipient.outcomes.items():
        yield (*person, channel, *_outcome_cells(outcome))


def _outcome_cells(outcome: OutcomeRecord) -> tuple[str, ...]:
    at, not_shown = write_optional_time(outcome.at) or "", ", ".join(outcome.not_shown)
    return (outcome.status, outcome.reason or "", at, str(outcome.attempts), outcome.reference or "", not_shown)
