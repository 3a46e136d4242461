"""Files that deliveries attach: upload, show, delete."""

import tempfile

from delivery.http.context import Request, Response
from delivery.http.input.receiving import receive_file
from delivery.http.route import NoParameters
from delivery.schemas import files

OCTETS = "application/octet-stream"
_IN_MEMORY = 2**20
"""Bytes; a larger file goes to the disk."""

FileRequest = Request[None, NoParameters]


async def upload(request: Request[None, files.FileQuery]) -> Response:
    """Store a file; the body is its content, of any type. A repeat returns the same id."""
    options = request.options
    with tempfile.SpooledTemporaryFile(_IN_MEMORY) as file:
        await receive_file(request.http, options.file_limit, options.body_timeout, file)
        stored = await request.services.uploads.store(request.tenant, request.query.name, file)
    return Response(files.FileResponse.of(stored), 201, {"Location": f"/v1/files/{stored.id}"})


async def show(request: FileRequest) -> Response:
    """Return the name, the size and the end of a file."""
    return Response(files.FileResponse.of(await request.services.uploads.find(request.tenant, _id(request))))


async def delete(request: FileRequest) -> Response:
    """Remove a file at once."""
    await request.services.uploads.delete(request.tenant, _id(request))
    return Response(None, 204)


def _id(request: FileRequest) -> str:
    return request.http.match_info["id"]
