"""Uploads of photos and documents: an address for the upload, the upload itself, and saving it as an attachment.

    photos.getMessagesUploadServer ─▶ POST upload_url (photo) ─▶ photos.saveMessagesPhoto ─▶ photo-1_5_key
    docs.getMessagesUploadServer   ─▶ POST upload_url (file)  ─▶ docs.save                ─▶ doc-1_6_key

Source: dev.vk.com, "Uploading files to the server".
"""

import secrets
from collections import OrderedDict
from dataclasses import dataclass
from typing import TypeVar

from sandbox.vk.errors import parameter_error
from sandbox.vkscript import Value

MAX_FILE = 200 * 2**20
_KEPT_FILES = 200

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class SavedFile:
    """A file that may be attached. `type`: "photo", "doc" or "audio_message"."""

    type: str
    name: str
    media_type: str
    data: bytes
    attachment: str

    def fields(self) -> dict[str, Value]:
        """Return the ids of the file, as methods of the API return them."""
        owner, number, key = self.attachment.removeprefix("photo").removeprefix("doc").split("_")
        return {"id": int(number), "owner_id": int(owner), "access_key": key}


@dataclass(frozen=True, slots=True)
class _Uploaded:
    name: str
    media_type: str
    data: bytes


class Uploads:
    """Of one community; the newest files are kept. `url`: what the addresses for uploads begin with."""

    def __init__(self, group: int) -> None:
        self.url = ""
        self._owner = -group
        self._last = 0
        self._servers: OrderedDict[str, str] = OrderedDict()
        self._uploaded: OrderedDict[str, _Uploaded] = OrderedDict()
        self._saved: OrderedDict[str, SavedFile] = OrderedDict()

    def server(self, kind: str) -> dict[str, Value]:
        """Return the answer of …getMessagesUploadServer."""
        key = secrets.token_hex(8)
        _keep(self._servers, key, kind)
        return {"upload_url": f"{self.url}{key}", "album_id": -64, "user_id": 0, "group_id": -self._owner}

    def upload(self, key: str, field: str, name: str, media_type: str, data: bytes) -> dict[str, Value]:
        """Return the answer of the address for uploads; `{"error": …}` for what is not expected there."""
        kind = self._servers.pop(key, "")
        if not kind or field != ("photo" if kind == "photo" else "file") or not data:
            return {"error": "unknown error", "error_descr": "bad upload"}
        if kind == "photo" and not media_type.startswith("image/"):
            return {"error": "ERR_UPLOAD_BAD_IMAGE_FORMAT: market photo upload wrong image format"}
        _keep(self._uploaded, key, _Uploaded(name, media_type, data))
        if kind == "photo":
            return {"server": 1, "photo": f'[{{"markers_restarted":true,"photo":"{key}:w"}}]', "hash": key}
        return {"file": f"{kind}|{key}"}

    def save_photo(self, photo: str, secret: str) -> list[Value]:
        """Return the answer of photos.saveMessagesPhoto. Raises CallFailed with VK's code 100."""
        uploaded = self._uploaded.pop(secret, None)
        if uploaded is None or secret not in photo:
            raise parameter_error("photos_list is invalid")
        saved = self._save("photo", uploaded)
        return [saved.fields()]

    def save_document(self, file: str, title: str) -> dict[str, Value]:
        """Return the answer of docs.save. Raises CallFailed with VK's code 100."""
        kind, _, key = file.partition("|")
        uploaded = self._uploaded.pop(key, None)
        if uploaded is None:
            raise parameter_error("file is invalid")
        saved = self._save(kind, uploaded, title)
        return {"type": saved.type, saved.type: {**saved.fields(), "title": saved.name}}

    def store(self, kind: str, name: str, media_type: str, data: bytes) -> SavedFile:
        """Store a file that a person sends."""
        return self._save(kind, _Uploaded(name, media_type, data))

    def _save(self, kind: str, uploaded: _Uploaded, title: str = "") -> SavedFile:
        self._last += 1
        # A voice message is attached as a document.
        prefix = "doc" if kind == "audio_message" else kind
        attachment = f"{prefix}{self._owner}_{self._last}_{secrets.token_hex(5)}"
        saved = SavedFile(kind, title or uploaded.name, uploaded.media_type, uploaded.data, attachment)
        _keep(self._saved, attachment, saved)
        return saved

    def find(self, attachment: str) -> SavedFile:
        """Return an uploaded file. Raises CallFailed with VK's code 100 if there is no such file."""
        saved = self._saved.get(attachment)
        if saved is None:
            raise parameter_error("attachment is invalid")
        return saved

    def get(self, attachment: str) -> SavedFile | None:
        return self._saved.get(attachment)


def _keep(store: OrderedDict[str, _T], key: str, value: _T) -> None:
    store[key] = value
    if len(store) > _KEPT_FILES:
        store.popitem(last=False)
