"""Responses that are the content of an uploaded file."""

import tempfile

from aiohttp import web

from core.uploads import not_found
from delivery.http.context import ApiRequest
from delivery.http.responses.csv import download_headers

OCTETS = "application/octet-stream"
IN_MEMORY = 2**20
"""Bytes; a larger file goes to the disk."""


async def send_content(request: ApiRequest, upload_id: str, name: str) -> web.StreamResponse:
    """Return the content of an uploaded file under a name, to be saved. Raises NotFound FILE_NOT_FOUND."""
    with tempfile.SpooledTemporaryFile(IN_MEMORY) as file:
        if not await request.services.uploads.load(request.tenant, upload_id, file):
            raise not_found(upload_id)
        file.seek(0)
        response = web.StreamResponse(headers=download_headers(name, OCTETS))
        await response.prepare(request.http)
        while piece := file.read(IN_MEMORY):
            await response.write(piece)
    await response.write_eof()
    return response
