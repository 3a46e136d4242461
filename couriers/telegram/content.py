"""The requests of a message, as Telegram's types: entities, keyboards, messages to reply to, edit, remove, files.

A message with files is single files and groups, the text as the first caption (C-44). Each part of an upload is a
request of its own, with the timeout of a request. Source: core.telegram.org/api/files#uploading-files.
"""

import hashlib
import mimetypes
from collections.abc import Awaitable, Callable, Sequence
from secrets import randbits
from typing import Any, NamedTuple

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
    Span,
    cut_text,
    find_files,
    label_of,
    media_groups,
    spans,
    split_text,
)

LONGEST_TEXT = 4096  # UTF-16 code units
LONGEST_CAPTION = 1024

_ENTITIES = {
    "bold": types.MessageEntityBold,
    "italic": types.MessageEntityItalic,
    "underline": types.MessageEntityUnderline,
    "strikethrough": types.MessageEntityStrike,
    "spoiler": types.MessageEntitySpoiler,
    "code": types.MessageEntityCode,
    "blockquote": types.MessageEntityBlockquote,
}

MAX_UPLOAD = 50 * 1024 * 1024  # bytes; Telegram takes more, but a courier uploads it again for each recipient
_PART = 512 * 1024
_BIG = 10 * 1024 * 1024  # Telegram has other methods for larger files

_ATTRIBUTES = {
    AttachmentType.VIDEO: lambda: types.DocumentAttributeVideo(duration=0, w=0, h=0, supports_streaming=True),
    AttachmentType.ANIMATION: types.DocumentAttributeAnimated,
    AttachmentType.AUDIO: lambda: types.DocumentAttributeAudio(duration=0),
    AttachmentType.VOICE: lambda: types.DocumentAttributeAudio(duration=0, voice=True),
}

Request = Any  # Telethon has no types


class TelegramRequests(NamedTuple):
    """`not_shown`: as in `couriers.sending.Sent`."""

    requests: Sequence[Request]
    not_shown: tuple[str, ...] = ()


def text_requests(peer: Any, message: Message) -> TelegramRequests:
    """Return the requests that send the text, each with its own random id: without content one for each part of the
    text."""
    send = functions.messages.SendMessageRequest
    content = message.content
    if content is None:
        parts = enumerate(split_text(message.text))
        return TelegramRequests([send(peer, text, random_id=message.random_id(part)) for part, text in parts])
    if not message.text.strip():
        return TelegramRequests([])
    text, entities, not_shown = cut_and_marked(message, content, LONGEST_TEXT)
    around = {"entities": entities, "reply_markup": keyboard(content), "reply_to": reply_to(content)}
    return TelegramRequests([send(peer, text, random_id=message.random_id(), **around)], not_shown)


def reply_to(content: Content) -> Any:
    """Return the message to reply to, None if there is none."""
    message_id = _message_id(content.reply_to.partition(",")[0])
    return types.InputReplyToMessage(message_id) if message_id else None


def edit_request(peer: Any, message: Message, content: Content) -> tuple[Request, tuple[str, ...]] | None:
    """Return the request that edits a message, and what it does not show; None if an edit cannot show the content."""
    message_id = _message_id(content.edit.rpartition(",")[2])
    if not message_id or content.reply is not None or content.attachments:
        return None
    request = functions.messages.EditMessageRequest(peer, message_id, reply_markup=keyboard(content))
    if not message.text.strip():
        return request, ()
    request.message, request.entities, not_shown = cut_and_marked(message, content, LONGEST_TEXT)
    return request, not_shown


def remove_request(peer: Any, content: Content) -> Request | None:
    """Return the request that removes messages, None if there is none to remove."""
    ids = [number for one in content.remove.split(",") if (number := _message_id(one))]
    if not ids:
        return None
    if isinstance(peer, types.InputPeerChannel):
        return functions.channels.DeleteMessagesRequest(types.InputChannel(peer.channel_id, peer.access_hash), ids)
    return functions.messages.DeleteMessagesRequest(ids, revoke=True)


def keyboard(content: Content) -> Any:
    """Return the buttons below the message, else those in place of the person's keyboard; None if there are none."""
    if content.inline:
        rows = [[_button(one.text, one.data, one.url) for one in row] for row in content.inline if row]
        return types.ReplyInlineMarkup([types.KeyboardInlineButtonRow(row) for row in rows])
    if content.reply is None:
        return None
    texts = [row for row in content.reply if row]
    keys = [types.KeyboardButtonRow([_key(one, one in content.request_contact) for one in row]) for row in texts]
    return types.ReplyKeyboardMarkup(keys, resize=True) if keys else types.ReplyKeyboardHide()


def _key(text: str, asks_for_contact: bool) -> Any:
    kind = types.ButtonTypeRequestPhone() if asks_for_contact else types.ButtonTypeDefault()
    return types.KeyboardButton(text, kind)


def _button(text: str, data: str, url: str) -> Any:
    kind = types.InlineButtonTypeUrl(url) if url else types.InlineButtonTypeCallback(data.encode())
    return types.KeyboardInlineButton(text, kind)


def cut_and_marked(message: Message, content: Content, longest: int) -> tuple[str, list[Any], tuple[str, ...]]:
    """Return the text that is shown, its entities, and what is not shown of it."""
    cut = cut_text(message.text, content.parse_mode, longest)
    text, marked = spans(cut, content.parse_mode)
    entities = [entity for span in marked if (entity := _entity(span))]
    return text, entities, () if cut == message.text else (Feature.TEXT_END,)


def _entity(span: Span) -> Any:
    """Return the entity of a marked range; None if it is not sent."""
    match span.kind:
        case "link":
            return types.MessageEntityTextUrl(span.offset, span.length, span.target) if span.target else None
        case "pre":
            return types.MessageEntityPre(span.offset, span.length, span.target)
        case kind if kind in _ENTITIES:
            return _ENTITIES[kind](span.offset, span.length)
    return None


def _message_id(text: str) -> int:
    """Return the id of a message; 0 if this is none."""
    return int(text) if text.isdecimal() and len(text) < 10 else 0


class TelegramUploads:
    """`request` makes one request. All methods raise what it raises, and OSError for a file that cannot be read."""

    def __init__(self, request: Callable[[Request], Awaitable[Any]]) -> None:
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
