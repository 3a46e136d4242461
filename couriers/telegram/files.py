"""The requests of a message with files: single files and groups, the text as the first caption, buttons (C-44)."""

from collections.abc import Sequence
from typing import Any

from telethon.tl import functions, types

from couriers.sending import Content, Feature, File, Message, find_files, label_of, media_groups
from couriers.telegram.content import (
    LONGEST_CAPTION,
    TelegramRequests,
    cut_and_marked,
    keyboard,
    reply_to,
    text_requests,
)
from couriers.telegram.uploads import MAX_UPLOAD, TelegramUploads


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
