"""The requests of one message, in order: texts, files, buttons. The first is a reply if the message is one."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from core.courier import (
    Attachment,
    AttachmentType,
    Content,
    Feature,
    File,
    Message,
    cut_text,
    find_files,
    media_groups,
    split_text,
    without_contact_buttons,
)

LONGEST_TEXT = 4096
LONGEST_CAPTION = 1024
"""UTF-16 code units of the text without marks. Source: core.telegram.org/bots/api#sendmessage, #sendphoto."""

MAX_UPLOAD = 50 * 1024 * 1024
"""Bytes of an uploaded file. Source: core.telegram.org/bots/api#sending-files."""

Json = dict[str, Any]

_SEND = {
    AttachmentType.PHOTO: "sendPhoto",
    AttachmentType.VIDEO: "sendVideo",
    AttachmentType.DOCUMENT: "sendDocument",
    AttachmentType.ANIMATION: "sendAnimation",
    AttachmentType.AUDIO: "sendAudio",
    AttachmentType.VOICE: "sendVoice",
}


@dataclass(frozen=True)
class Request:
    """One call, without its chat. `files`: to upload, by the names that parameters give as attach://name."""

    method: str
    parameters: Json
    files: Mapping[str, Path] = field(default_factory=dict)


class Requests(NamedTuple):
    """`not_shown`: as in `core.courier.Sent`."""

    requests: Sequence[Request]
    not_shown: tuple[str, ...] = ()


def send_requests(message: Message) -> Requests:
    """Return the requests that send a message. Without content its text is sent in as many parts as it needs."""
    content = message.content
    if content is None:
        return Requests([Request("sendMessage", {"text": text}) for text in split_text(message.text)])
    files, not_shown = find_files(content.attachments, MAX_UPLOAD)
    if content.request_contact and not is_private(message.address):
        content = without_contact_buttons(content)
        not_shown.append(Feature.REQUEST_CONTACT)  # the Bot API refuses it
    if content.inline and content.reply is not None:
        not_shown.append(Feature.REPLY)  # a message has one keyboard
    sent = _file_requests(message, content, media_groups(files)) if files else _text_request(message, content)
    return Requests(sent.requests, (*not_shown, *sent.not_shown))


def _text_request(message: Message, content: Content) -> Requests:
    if not message.text.strip():
        return Requests(())
    request, not_shown = _text(message, content, _reply(content))
    return Requests([request], not_shown)


def _text(message: Message, content: Content, more: Json) -> tuple[Request, tuple[str, ...]]:
    text, not_shown = _cut(message, content, LONGEST_TEXT)
    return Request("sendMessage", {"text": text, **_mode(content), **more, **_markup(content)}), not_shown


def _file_requests(message: Message, content: Content, files: Sequence[Sequence[File]]) -> Requests:
    """Return the requests for the files. The text is the first caption. A group cannot have a keyboard: then the text
    follows with it.
    """
    if keyboard(content) and len(files[0]) > 1:
        return _groups_before_text(message, content, files)
    text, not_shown = _cut(message, content, LONGEST_CAPTION)
    caption = {"caption": text, **_mode(content)} if text else {}
    first = _file_request(files[0], caption, {**_reply(content), **_markup(content)})
    return Requests([first, *map(_file_request, files[1:])], not_shown)


def _groups_before_text(message: Message, content: Content, files: Sequence[Sequence[File]]) -> Requests:
    requests = [_file_request(files[0], {}, _reply(content)), *map(_file_request, files[1:])]
    if not message.text.strip():
        return Requests(requests, (Feature.INLINE if content.inline else Feature.REPLY,))
    last, not_shown = _text(message, content, {})
    return Requests([*requests, last], not_shown)


def _file_request(files: Sequence[File], caption: Json | None = None, more: Json | None = None) -> Request:
    """Return the request that sends a file, or several as one group."""
    media, uploads = _media(files, caption or {})
    if len(files) == 1:
        kind = files[0].attachment.type
        return Request(_SEND[kind], {str(kind): media[0]["media"], **(caption or {}), **(more or {})}, uploads)
    return Request("sendMediaGroup", {"media": media, **(more or {})}, uploads)


def _media(files: Sequence[File], caption: Json) -> tuple[list[Json], dict[str, Path]]:
    """Return the files as InputMedia, the first with the caption, and what to upload for them."""
    attachments = [file.attachment for file in files]
    uploads = {f"file{at}": Path(one.path) for at, one in enumerate(attachments) if one.path}
    media: list[Json] = [
        {"type": str(one.type), "media": _name(one, f"file{at}")} for at, one in enumerate(attachments)
    ]
    media[0] |= caption
    return media, uploads


def _name(attachment: Attachment, upload: str) -> str:
    """Return the file as Telegram takes it: the upload of this name, a URL, or Telegram's id."""
    return f"attach://{upload}" if attachment.path else attachment.url or attachment.provider_id


def edit_requests(message: Message, content: Content) -> Iterator[tuple[Request, tuple[str, ...]]]:
    """Emit the requests of which one edits the message, and what each does not show.

    There are none if an edit cannot show the content: a reply keyboard, a voice and several files need a new message.
    """
    message_id = edited_message(content)
    if content.reply is not None or not message_id.isdecimal():
        return
    target = {"message_id": int(message_id), **_markup(content)}
    files, missing = find_files(content.attachments, MAX_UPLOAD)
    for request, not_shown in _file_edit(message, content, files, target) if files else _edit(message, content, target):
        yield request, (*missing, *not_shown)


def _file_edit(
    message: Message, content: Content, files: Sequence[File], target: Json
) -> Iterator[tuple[Request, tuple[str, ...]]]:
    """Emit the request that exchanges the file together with the caption, if Telegram can."""
    if len(files) > 1 or files[0].attachment.type is AttachmentType.VOICE:
        return
    text, not_shown = _cut(message, content, LONGEST_CAPTION)
    media, uploads = _media(files, {"caption": text, **_mode(content)} if text else {})
    yield Request("editMessageMedia", {**target, "media": media[0]}, uploads), not_shown


def _edit(message: Message, content: Content, target: Json) -> Iterator[tuple[Request, tuple[str, ...]]]:
    """Emit the requests that leave the file as it is; the last is for a message with a file."""
    if not message.text.strip():
        yield Request("editMessageReplyMarkup", target), ()
        return
    text, not_shown = _cut(message, content, LONGEST_TEXT)
    yield Request("editMessageText", {**target, "text": text, **_mode(content)}), not_shown
    text, not_shown = _cut(message, content, LONGEST_CAPTION)
    yield Request("editMessageCaption", {**target, "caption": text, **_mode(content)}), not_shown


def edited_message(content: Content) -> str:
    """Return the id of the message to edit: the last part of it, which has the buttons."""
    return content.edit.rpartition(",")[2]


def keyboard(content: Content) -> Json:
    """Return the buttons below the message, else those in place of the person's keyboard; empty without any."""
    if content.inline:
        return {"inline_keyboard": [[_button(one.text, one.data, one.url) for one in row] for row in content.inline]}
    if content.reply is None:
        return {}
    rows = [[_key(text, text in content.request_contact) for text in row] for row in content.reply if row]
    return {"keyboard": rows, "resize_keyboard": True} if rows else {"remove_keyboard": True}


def is_private(address: str) -> bool:
    """Return whether a chat is between a person and the bot; groups have negative ids, channels names."""
    return address.isdecimal()


def _key(text: str, asks_for_contact: bool) -> Json:
    return {"text": text, "request_contact": True} if asks_for_contact else {"text": text}


def _button(text: str, data: str, url: str) -> Json:
    return {"text": text, "url": url} if url else {"text": text, "callback_data": data}


def _markup(content: Content) -> Json:
    found = keyboard(content)
    return {"reply_markup": found} if found else {}


def _mode(content: Content) -> Json:
    return {"parse_mode": str(content.parse_mode)} if content.parse_mode else {}


def _reply(content: Content) -> Json:
    """Return the parameters of a reply. A message that is gone meanwhile does not keep this one from being sent."""
    message_id = content.reply_to.partition(",")[0]
    if not message_id.isdecimal():
        return {}
    return {"reply_parameters": {"message_id": int(message_id), "allow_sending_without_reply": True}}


def _cut(message: Message, content: Content, longest: int) -> tuple[str, tuple[str, ...]]:
    text = cut_text(message.text, content.parse_mode, longest)
    return text, () if text == message.text else (Feature.TEXT_END,)
