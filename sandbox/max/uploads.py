"""Uploads: an address for one file, the upload itself, and the token by which a message names the file.

POST /uploads?type=image ─▶ {url}          ─▶ POST url ─▶ {"photos": {id: {token}}}
POST /uploads?type=file  ─▶ {url}          ─▶ POST url ─▶ {"token", "fileId"}
POST /uploads?type=video ─▶ {url, token}   ─▶ POST url ─▶ <retval>1</retval>      the same for audio
"""

import secrets
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from sandbox.max.errors import ApiError, malformed

TYPES = ("image", "video", "audio", "file")
_FIRST_TOKEN = ("video", "audio")
_KEPT_FILES = 200


@dataclass(frozen=True, slots=True)
class UploadedFile:
    """A file that messages may name by its token."""

    type: str
    token: str
    name: str
    media_type: str
    data: bytes

    def about(self) -> dict[str, Any]:
        """Return what a message shows of a file besides its token."""
        return {"filename": self.name, "size": len(self.data)} if self.type == "file" else {}


class Uploads:
    """Of one bot; the newest files are kept. `url`: what the addresses for uploads begin with."""

    def __init__(self) -> None:
        self.url = ""
        self._expected: OrderedDict[str, tuple[str, str]] = OrderedDict()
        self._files: OrderedDict[str, UploadedFile] = OrderedDict()

    def server(self, kind: str) -> dict[str, str]:
        """Return the answer of POST /uploads. Raises ApiError."""
        if kind not in TYPES:
            raise malformed(f"type: one of {', '.join(TYPES)}")
        key, token = secrets.token_hex(8), secrets.token_hex(24)
        self._expected[key] = kind, token
        return {"url": f"{self.url}{key}", **({"token": token} if kind in _FIRST_TOKEN else {})}

    def upload(self, key: str, name: str, media_type: str, data: bytes) -> web.Response:
        """Return the answer of the address for one upload."""
        kind, token = self._expected.pop(key, ("", ""))
        if not kind or not data:
            return web.Response(status=400, text="bad upload")
        self.store(UploadedFile(kind, token, name, media_type, data))
        if kind in _FIRST_TOKEN:
            return web.Response(text="<retval>1</retval>", content_type="text/xml")
        if kind == "image":
            return web.json_response({"photos": {secrets.token_hex(8): {"token": token}}})
        return web.json_response({"token": token, "fileId": len(self._files)})

    def store(self, file: UploadedFile) -> None:
        self._files[file.token] = file
        if len(self._files) > _KEPT_FILES:
            self._files.popitem(last=False)

    def find(self, kind: str, payload: dict[str, Any]) -> UploadedFile:
        """Return the uploaded file that a payload names. Raises ApiError if no file of this type has the token of the
        payload.
        """
        photos = payload.get("photos")
        named = next(iter(photos.values()), {}) if isinstance(photos, dict) else payload
        file = self._files.get(str(named.get("token")))
        if file is None or file.type != kind:
            raise ApiError(400, "proto.payload", f"attachments: no {kind} with this token")
        return file

    def get(self, token: str) -> UploadedFile:
        """Return an uploaded file. Raises LookupError."""
        return self._files[token]
