"""The middleware that compresses JSON. Streams are never compressed: their events must arrive at once."""

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler

LEAST = 1024
"""Bytes above which a body is compressed: below, a packet is sent either way."""
_TYPES = frozenset({"application/json", "application/problem+json"})


@web.middleware
async def compress_json(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Compress a large JSON response for clients that accept it. Must be outside `respond_to_errors`."""
    response = await handler(request)
    if isinstance(response, web.Response) and _is_large_json(response):
        response.headers[hdrs.VARY] = hdrs.ACCEPT_ENCODING
        response.enable_compression()
    return response


def _is_large_json(response: web.Response) -> bool:
    body = response.body
    is_large = isinstance(body, bytes) and len(body) > LEAST
    return is_large and response.content_type in _TYPES and hdrs.CONTENT_ENCODING not in response.headers
