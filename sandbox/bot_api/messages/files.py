"""The files of the Bot API: uploads, file ids, URLs; and getFile."""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from sandbox.bot_api.state.bot import Bot
from sandbox.bot_api.state.errors import ApiError, bad_request
from sandbox.bot_api.state.parameters import Parameters, Upload

MAX_UPLOAD = 50 * 1024 * 1024
MAX_DOWNLOAD = 20 * 1024 * 1024
KINDS = ("photo", "video", "document", "animation", "audio", "voice")
_TIMED = ("voice", "audio", "video", "animation")
_SIZED = ("video", "animation")

Json = dict[str, Any]


def given_file(bot: Bot, parameters: Parameters, name: str, text: str) -> tuple[str, Upload]:
    """Return the file of the parameter `name` with the value `text`: an upload, a known file_id, or a URL; the sandbox
    downloads nothing, so a URL is the content. Raises ApiError.
    """
    upload = parameters.upload(name)
    if upload is not None:
        return bot.store_file(_checked(upload)), upload
    if text in bot.files:
        return text, bot.files[text]
    if text.startswith(("http://", "https://")):
        linked = Upload(text.rpartition("/")[2] or "file", "application/octet-stream", text.encode())
        return bot.store_file(linked), linked
    raise bad_request("wrong file identifier/HTTP URL specified" if text else f"there is no {name} in the request")


def _checked(upload: Upload) -> Upload:
    if not upload.content:
        raise bad_request("file must be non-empty")
    if len(upload.content) > MAX_UPLOAD:
        raise ApiError(413, "Request Entity Too Large")
    return upload


def file_object(kind: str, file_id: str, upload: Upload, parameters: Parameters) -> Any:
    """Return the object Document, Voice, Video, …, or the list of PhotoSize."""
    file = {"file_id": file_id, "file_unique_id": unique_id(upload), "file_size": len(upload.content)}
    if kind == "photo":
        return [{**file, "width": 640, "height": 480}]
    file["mime_type"] = upload.content_type
    if kind != "voice":
        file["file_name"] = upload.name
    if kind in _TIMED:
        file["duration"] = parameters.integer("duration")
    return {**file, **({"width": 640, "height": 480} if kind in _SIZED else {})}


def unique_id(upload: Upload) -> str:
    """Return the id that is the same for the same content."""
    return sha256(upload.content).hexdigest()[:16]


def files_of(message: Json) -> list[tuple[str, str]]:
    """Return type and file_id of each file of a message; of a photo the largest size."""
    found = [(kind, message[kind]) for kind in KINDS if kind in message]
    return [(kind, (file[-1] if kind == "photo" else file)["file_id"]) for kind, file in found]


def is_linked(upload: Upload) -> bool:
    """Return whether the file is only the URL under which it was sent."""
    return upload.content.startswith((b"http://", b"https://"))


def get_file(bot: Bot, parameters: Parameters) -> Json:
    file_id = parameters.text("file_id")
    upload = bot.files.get(file_id)
    if upload is None:
        raise bad_request("invalid file_id")
    if len(upload.content) > MAX_DOWNLOAD:
        raise bad_request("file is too big")
    file = {"file_id": file_id, "file_unique_id": unique_id(upload), "file_size": len(upload.content)}
    return {**file, "file_path": f"files/{file_id}"}


FILES: Mapping[str, Any] = {"getFile": get_file}
