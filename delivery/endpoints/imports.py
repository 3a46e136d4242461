"""CSV import: a whole file or nothing. The body goes to a temporary file as it arrives; core reads it from there."""

import tempfile
from typing import IO

from aiohttp import web

from core.directory.csv_cells import FileKind
from core.model.delivery import Repeat
from delivery.http.context import Request, Response
from delivery.http.idempotency import respond_once
from delivery.http.input.decoding import check_content_type
from delivery.http.input.receiving import receive_file
from delivery.http.route import NoParameters
from delivery.schemas.directory import imports

CSV = "text/csv"
CSV_TYPES = frozenset({CSV, "application/csv", "application/vnd.ms-excel", "application/octet-stream"})
"""The last three are what browsers and HTTP clients send for a file."""
_IN_MEMORY = 2**20
"""Bytes; a larger file goes to the disk."""

ImportRequest = Request[None, imports.ImportQuery]


async def import_csv(request: ImportRequest) -> web.StreamResponse:
    """Import a file. A repeat with the same Idempotency-Key and the same file returns the first response."""
    check_content_type(request.http, CSV_TYPES)
    with tempfile.SpooledTemporaryFile(_IN_MEMORY) as file:
        limit, timeout = request.options.import_limit, request.options.body_timeout
        content = await receive_file(request.http, limit, timeout, file)

        async def run(request: ImportRequest) -> Response:
            return await _import(request, file)

        if request.repeat is None:
            return (await run(request)).encode()
        repeat = Repeat(request.repeat.key, f"{request.repeat.fingerprint}{content}")
        return await respond_once(request, repeat, run)


async def _import(request: ImportRequest, file: IO[bytes]) -> Response:
    file.seek(0)
    kind, only_checks = FileKind(request.query.kind), request.query.only_checks
    register = await request.services.core.channels.current()
    result = await request.services.importing.run(
        request.tenant,
        kind,
        file,
        dry_run=only_checks,
        channels=register.names,
        encoding=request.query.encoding or "",
    )
    return Response(imports.Imported.of(result, dry_run=only_checks))


async def show_progress(request: Request[None, NoParameters]) -> Response:
    """Return how far the running import of the tenant is."""
    found = await request.services.importing.progress(request.tenant)
    return Response(imports.ImportProgress(found.state, found.kind, found.rows, found.done))
