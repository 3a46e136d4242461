"""Files over MTProto: upload.saveFilePart, messages.uploadMedia, messages.sendMedia, messages.sendMultiMedia.

Source: core.telegram.org/api/files, core.telegram.org/method/messages.sendMultiMedia.
"""

from secrets import token_bytes
from typing import Any

from telethon.tl import functions as f
from telethon.tl import types

from sandbox.telegram.methods import config, faults
from sandbox.telegram.methods.replies import Refusal, Reply
from sandbox.telegram.methods.sending import SendRequest, prepare, sent_message
from sandbox.telegram.state.dialogs import StoredFile, Uploads
from sandbox.telegram.state.hub import Call, now

MAX_PART = 512 * 1024
MAX_GROUP = 10

_BY_ATTRIBUTE = (
    (types.DocumentAttributeAnimated, "animation"),
    (types.DocumentAttributeVideo, "video"),
)


def save_part(call: Call) -> Reply:
    """Handle upload.saveFilePart and upload.saveBigFilePart."""
    request = call.request
    if not 0 < len(request.bytes) <= MAX_PART:
        return Refusal(400, "FILE_PART_SIZE_INVALID")
    call.account.uploads.add_part(request.file_id, request.file_part, request.bytes)
    return True


def upload_media(call: Call) -> Reply:
    """Handle messages.uploadMedia: keep a file for a group."""
    file = stored_file(call, call.request.media)
    if isinstance(file, Refusal):
        return file
    return media_of(call.account.uploads, file)


def media_of(uploads: Uploads, file: StoredFile) -> Any:
    """Keep a file; return it as part of a message."""
    file_id, reference = uploads.keep(file), token_bytes(8)
    size = len(file.content)
    if file.kind == "photo":
        sizes = [types.PhotoSize("x", 640, 480, size)]
        return types.MessageMediaPhoto(photo=types.Photo(file_id, 1, reference, now(), sizes, config.DC))
    attributes = [types.DocumentAttributeFilename(file.name)] if file.name else []
    if file.kind in ("voice", "audio"):
        attributes.append(types.DocumentAttributeAudio(duration=1, voice=file.kind == "voice"))
    kind = "application/octet-stream"
    document = types.Document(file_id, 1, reference, now(), kind, size, config.DC, attributes)
    return types.MessageMediaDocument(document=document)


def get_file(call: Call) -> Reply:
    """Handle upload.getFile: return a part of a file."""
    request = call.request
    file = call.account.uploads.files.get(getattr(request.location, "id", 0))
    if file is None:
        return Refusal(400, "LOCATION_INVALID")
    part = file.content[request.offset : request.offset + request.limit]
    return types.upload.File(types.storage.FileUnknown(), now(), part)


def stored_file(call: Call, media: Any) -> StoredFile | Refusal:
    """Return the file of an InputMedia, or the refusal."""
    uploads = call.account.uploads
    match media:
        case types.InputMediaUploadedPhoto():
            return _assembled(uploads, media.file, "photo")
        case types.InputMediaUploadedDocument():
            return _assembled(uploads, media.file, _kind(media.attributes))
        case types.InputMediaPhotoExternal() | types.InputMediaDocumentExternal():
            kind = "photo" if isinstance(media, types.InputMediaPhotoExternal) else "document"
            return StoredFile(kind, media.url.rpartition("/")[2], media.url.encode())
        case types.InputMediaPhoto() | types.InputMediaDocument():
            return uploads.files.get(media.id.id) or Refusal(400, "MEDIA_INVALID")
    return Refusal(400, "MEDIA_INVALID")


def _assembled(uploads: Uploads, file: Any, kind: str) -> StoredFile | Refusal:
    parts = uploads.parts.get(file.id, {})
    missing = next((number for number in range(file.parts) if number not in parts), None)
    if missing is not None or not file.parts:
        return Refusal(400, f"FILE_PART_{missing or 0}_MISSING")
    return StoredFile(kind, file.name, b"".join(parts[number] for number in range(file.parts)))


def _kind(attributes: list[Any]) -> str:
    for attribute in attributes:
        if isinstance(attribute, types.DocumentAttributeAudio):
            return "voice" if attribute.voice else "audio"
    for shape, kind in _BY_ATTRIBUTE:
        if any(isinstance(attribute, shape) for attribute in attributes):
            return kind
    return "document"


def send_media(call: Call) -> Reply:
    """Handle messages.sendMedia, with the faults of sendMessage."""
    file = stored_file(call, call.request.media)
    return file if isinstance(file, Refusal) else faults.send_message(call, file)


def send_multi_media(call: Call) -> Reply:
    """Handle messages.sendMultiMedia: all of a group is checked before any of it is sent."""
    request = call.request
    if not 2 <= len(request.multi_media) <= MAX_GROUP:
        return Refusal(400, "MULTI_MEDIA_TOO_LONG" if len(request.multi_media) > MAX_GROUP else "MEDIA_EMPTY")
    prepared = [_prepared(call, one) for one in request.multi_media]
    sendings = [one for one in prepared if not isinstance(one, Refusal)]
    if len(sendings) < len(prepared):
        return next(one for one in prepared if isinstance(one, Refusal))
    updates: list[Any] = []
    for sending in sendings:
        sent = sent_message(sending)
        updates.append(types.UpdateMessageID(sent.message, random_id=sending.call.request.random_id))
    return types.Updates(updates, users=[], chats=[], date=now(), seq=0)


def _prepared(call: Call, item: Any) -> SendRequest | Refusal:
    """Return one message of a group as a request of its own. A group has only files that the server keeps."""
    if not isinstance(item.media, types.InputMediaPhoto | types.InputMediaDocument):
        return Refusal(400, "MEDIA_INVALID")
    file = stored_file(call, item.media)
    if isinstance(file, Refusal):
        return file
    request, peer = call.request, call.request.peer
    single = f.messages.SendMediaRequest(
        peer, item.media, item.message, random_id=item.random_id, entities=item.entities, reply_to=request.reply_to
    )
    return prepare(Call(call.hub, call.client, single, call.method), file)
