"""The requests of a message with files: single files and groups, the text as the first caption, buttons (C-44).

Each part of an upload is a request of its own, with the timeout of a request.
Source: core.telegram.org/api/files#uploading-files.
"""

import hashlib
import mimetypes
from collections.abc import Awaitable, Callable, Sequence
from secrets import randbits
from typing import Any

from telethon.tl import functions, types

from couriers.sending import (
    Attachment,
    AttachmentType,
    Content,
    Feature,
    File,
    FileNotLoaded,
    Message,
    MessageFiles,
    find_files,
    label_of,
    media_groups,
)
from couriers.telegram.content import (
    LONGEST_CAPTION,
    TelegramRequests,
    cut_and_marked,
    keyboard,
    reply_to,
    text_requests,
)

MAX_UPLOAD = 50 * 1024 * 1024  # bytes; Telegram takes more, but a courier uploads it again for each recipient
_PART = 512 * 1024
_BIG = 10 * 1024 * 1024  # Telegram has other methods for larger files

_ATTRIBUTES = {
    AttachmentType.VIDEO: lambda: types.DocumentAttributeVideo(duration=0, w=0, h=0, supports_streaming=True),
    AttachmentType.ANIMATION: types.DocumentAttributeAnimated,
    AttachmentType.AUDIO: lambda: types.DocumentAttributeAudio(duration=0),
    AttachmentType.VOICE: lambda: types.DocumentAttributeAudio(duration=0, voice=True),
}

Request = Callable[[Any], Awaitable[Any]]


class TelegramUploads:
    """`request` makes one request. All methods raise what it raises, and OSError for a file that cannot be read."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._files = MessageFiles(MAX_UPLOAD)

    async def media(self, attachment: Attachment) -> Any:
        """Return the file as Telegram's InputMedia, which can be sent once."""
        is_photo = attachment.type is AttachmentType.PHOTO
        if attachment.url:
            return (types.InputMediaPhotoExternal if is_photo else types.InputMediaDocumentExternal)(attachment.url)
        file = await self._upload(attachment)
        if is_photo:
            return types.InputMediaUploadedPhoto(file)
        attributes = [types.DocumentAttributeFilename(file.name)]
        if make := _ATTRIBUTES.get(attachment.type):
            attributes.append(make())
        mime_type = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
        force_file = attachment.type is AttachmentType.DOCUMENT
        return types.InputMediaUploadedDocument(file, mime_type, attributes, force_file=force_file)

    async def media_of_group(self, peer: Any, attachment: Attachment) -> Any:
        """Return the file as a group may have it: Telegram keeps it before the group is sent."""
        kept = await self._request(functions.messages.UploadMediaRequest(peer, await self.media(attachment)))
        if isinstance(kept, types.MessageMediaPhoto):
            photo = kept.photo
            return types.InputMediaPhoto(types.InputPhoto(photo.id, photo.access_hash, photo.file_reference))
        document = kept.document
        return types.InputMediaDocument(types.InputDocument(document.id, document.access_hash, document.file_reference))

    async def _upload(self, attachment: Attachment) -> Any:
        try:
            loaded = await self._files.load(attachment)
        except FileNotLoaded as error:
            raise OSError(str(error)) from None  # it was there a moment ago: the next attempt leaves it out
        size, file_id = len(loaded.data), randbits(63)
        parts = [loaded.data[start : start + _PART] for start in range(0, size, _PART)]
        for number, part in enumerate(parts):
            await self._request(_save_part(file_id, number, len(parts), part, is_big=size > _BIG))
        if size > _BIG:
            return types.InputFileBig(file_id, len(parts), loaded.name)
        checksum = hashlib.md5(loaded.data, usedforsecurity=False).hexdigest()
        return types.InputFile(file_id, len(parts), loaded.name, checksum)


def _save_part(file_id: int, number: int, count: int, part: bytes, *, is_big: bool) -> Any:
    if is_big:
        return functions.upload.SaveBigFilePartRequest(file_id, number, count, part)
    return functions.upload.SaveFilePartRequest(file_id, number, part)


async def content_requests(peer: Any, message: Message, content: Content, uploads: TelegramUploads) -> TelegramRequests:
    """Return the requests that send a message with content. Files are uploaded here; nothing is sent yet. Raises what
    `TelegramUploads` raises.
    """
    files, not_shown = find_files(content.attachments, MAX_UPLOAD)
    not_shown += [label_of(file.attachment) for file in files if file.attachment.provider_id]  # it has no ids for files
    if content.inline and content.reply is not None:
        not_shown.append(Feature.REPLY)  # a message has one keyboard
    groups = media_groups([file for file in files if not file.attachment.provider_id])
    if groups:
        requests, more = await _file_requests(peer, message, content, groups, uploads)
    else:
        requests, more = text_requests(peer, message)
    return TelegramRequests(requests, (*not_shown, *more))


async def _file_requests(
    peer: Any, message: Message, content: Content, groups: Sequence[Sequence[File]], uploads: TelegramUploads
) -> TelegramRequests:
    """Return the requests for the files. A group cannot have a keyboard: then the text follows with it."""
    buttons = keyboard(content)
    is_text_last = buttons is not None and len(groups[0]) > 1
    caption = cut_and_marked(message, content, LONGEST_CAPTION)
    requests = [await _file_request(peer, message, group, uploads) for group in groups]
    first = requests[0]
    first.reply_to = reply_to(content)
    if not is_text_last:
        captioned = first.multi_media[0] if len(groups[0]) > 1 else first
        captioned.message, captioned.entities, not_shown = caption
        first.reply_markup = buttons
        return TelegramRequests(requests, not_shown)
    text, more = text_requests(peer, message)
    lost = () if text else (Feature.INLINE if content.inline else Feature.REPLY,)
    return TelegramRequests([*requests, *text], (*more, *lost))


async def _file_request(peer: Any, message: Message, files: Sequence[File], uploads: TelegramUploads) -> Any:
    """Send one file, or several as a group. The random ids stay the same if a file is missing in a later attempt."""
    if len(files) == 1:
        media = await uploads.media(files[0].attachment)
        return functions.messages.SendMediaRequest(peer, media, "", random_id=_random_id(message, files[0]))
    items = [
        types.InputSingleMedia(
            await uploads.media_of_group(peer, file.attachment), "", random_id=_random_id(message, file)
        )
        for file in files
    ]
    return functions.messages.SendMultiMediaRequest(peer, items)


def _random_id(message: Message, file: File) -> int:
    """Return the random id of a file. The text has the number 0."""
    return message.random_id(1 + file.number)
