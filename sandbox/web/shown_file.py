"""A file of a message, for the inbox page: pictures and sounds are shown, everything else is downloaded."""

import mimetypes

from aiohttp import web

_SHOWN = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp", "audio/ogg", "audio/mpeg", "video/mp4"})
_HEADERS = {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "default-src 'none'"}


def file_response(data: bytes, media_type: str) -> web.Response:
    is_shown = media_type in _SHOWN
    kind = media_type if is_shown else "application/octet-stream"
    shown = {"Content-Type": kind, "Content-Disposition": "inline" if is_shown else "attachment"}
    return web.Response(body=data, headers=_HEADERS | shown)


def media_type_of(name: str) -> str:
    """Return the media type by the end of the name: clients of the Bot API upload files without one."""
    return mimetypes.guess_type(name)[0] or "application/octet-stream"
