"""The requests of one message, in order: texts, files, buttons. The first is a reply if the message is one."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from aiogram import methods
from aiogram.methods import TelegramMethod
from aiogram.types import (
    FSInputFile,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    InputMediaDocument,
    InputMediaPhoto,
    InputMediaVideo,
    KeyboardButton,
    ReplyKeyboardMarkup,
    ReplyKeyboardRemove,
    ReplyParameters,
)

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
)

LONGEST_TEXT = 4096
LONGEST_CAPTION = 1024
"""UTF-16 code units of the text without marks. Source: core.telegram.org/bots/api#sendmessage, #sendphoto."""

MAX_UPLOAD = 50 * 1024 * 1024
"""Bytes of an uploaded file. Source: core.telegram.org/bots/api#sending-files."""

Request = TelegramMethod[Any]
Keyboard = InlineKeyboardMarkup | ReplyKeyboardMarkup | ReplyKeyboardRemove

_SEND = {
    AttachmentType.PHOTO: methods.SendPhoto,
    AttachmentType.VIDEO: methods.SendVideo,
    AttachmentType.DOCUMENT: methods.SendDocument,
    AttachmentType.ANIMATION: methods.SendAnimation,
    AttachmentType.AUDIO: methods.SendAudio,
    AttachmentType.VOICE: methods.SendVoice,
}
_MEDIA = {
    AttachmentType.PHOTO: InputMediaPhoto,
    AttachmentType.VIDEO: InputMediaVideo,
    AttachmentType.DOCUMENT: InputMediaDocument,
}


class Requests(NamedTuple):
    """`not_shown`: as in `core.courier.Sent`."""

    requests: Sequence[Request]
    not_shown: tuple[str, ...] = ()


def send_requests(message: Message) -> Requests:
    """Return the requests that send a message. Without content its text is sent in as many parts as it needs."""
    content = message.content
    if content is None:
        return Requests([methods.SendMessage(chat_id=message.address, text=text) for text in split_text(message.text)])
    files, not_shown = find_files(content.attachments, MAX_UPLOAD)
    if content.inline and content.reply is not None:
        not_shown.append(Feature.REPLY)  # a message has one keyboard
    sent = _file_requests(message, content, media_groups(files)) if files else _text_request(message, content)
    return Requests(sent.requests, (*not_shown, *sent.not_shown))


def _text_request(message: Message, content: Content) -> Requests:
    if not message.text.strip():
        return Requests(())
    text, not_shown = _cut(message, content, LONGEST_TEXT)
    request = methods.SendMessage(
        chat_id=message.address, text=text, **_mode(content), **_reply(content), reply_markup=keyboard(content)
    )
    return Requests([request], not_shown)


def _file_requests(message: Message, content: Content, files: Sequence[Sequence[File]]) -> Requests:
    """Return the requests for the files. The text is the first caption. A group cannot have a keyboard: then the text
    follows with it.
    """
    buttons = keyboard(content)
    if buttons is not None and len(files[0]) > 1:
        return _groups_before_text(message, content, files)
    text, not_shown = _cut(message, content, LONGEST_CAPTION)
    caption = {"caption": text, **_mode(content)} if text else {}
    first = _file_request(message, files[0], caption, {**_reply(content), **_markup(buttons)})
    return Requests([first, *(_file_request(message, group) for group in files[1:])], not_shown)


def _groups_before_text(message: Message, content: Content, files: Sequence[Sequence[File]]) -> Requests:
    requests = [_file_request(message, files[0], {}, _reply(content))]
    requests += [_file_request(message, group) for group in files[1:]]
    if not message.text.strip():
        return Requests(requests, (Feature.INLINE if content.inline else Feature.REPLY,))
    text, not_shown = _cut(message, content, LONGEST_TEXT)
    last = methods.SendMessage(chat_id=message.address, text=text, **_mode(content), reply_markup=keyboard(content))
    return Requests([*requests, last], not_shown)


def _file_request(
    message: Message,
    files: Sequence[File],
    caption: dict[str, Any] | None = None,
    more: dict[str, Any] | None = None,
) -> Request:
    if len(files) == 1:
        kind, file = files[0].attachment.type, _input_file(files[0].attachment)
        fields = {str(kind): file, **(caption or {}), **(more or {})}
        request: Request = _SEND[kind](chat_id=message.address, **fields)
        return request
    media = [_MEDIA[file.attachment.type](media=_input_file(file.attachment)) for file in files]
    media[0] = media[0].model_copy(update=caption or {})
    return methods.SendMediaGroup(chat_id=message.address, media=media, **(more or {}))


def _input_file(attachment: Attachment) -> FSInputFile | str:
    """Return the file as aiogram takes it: uploaded, or named by a URL or by Telegram's id."""
    return FSInputFile(attachment.path) if attachment.path else attachment.url or attachment.provider_id


def edit_requests(message: Message, content: Content) -> Iterator[tuple[Request, tuple[str, ...]]]:
    """Emit the requests of which one edits the message, and what each does not show; the last is for a message with a
    file.

    There are none if an edit cannot show the content: files and a reply keyboard need a new message.
    """
    message_id = edited_message(content)
    if content.attachments or content.reply is not None or not message_id.isdecimal():
        return
    target = {"chat_id": message.address, "message_id": int(message_id), **_markup(keyboard(content))}
    if not message.text.strip():
        yield methods.EditMessageReplyMarkup(**target), ()
        return
    text, not_shown = _cut(message, content, LONGEST_TEXT)
    yield methods.EditMessageText(**target, text=text, **_mode(content)), not_shown
    text, not_shown = _cut(message, content, LONGEST_CAPTION)
    yield methods.EditMessageCaption(**target, caption=text, **_mode(content)), not_shown


def edited_message(content: Content) -> str:
    """Return the id of the message to edit: the last part of it, which has the buttons."""
    return content.edit.rpartition(",")[2]


def keyboard(content: Content) -> Keyboard | None:
    """Return the buttons below the message, else those in place of the person's keyboard."""
    if content.inline:
        return InlineKeyboardMarkup(
            inline_keyboard=[[_button(one.text, one.data, one.url) for one in row] for row in content.inline]
        )
    if content.reply is None:
        return None
    rows = [[KeyboardButton(text=text) for text in row] for row in content.reply if row]
    return (
        ReplyKeyboardMarkup(keyboard=rows, resize_keyboard=True) if rows else ReplyKeyboardRemove(remove_keyboard=True)
    )


def _button(text: str, data: str, url: str) -> InlineKeyboardButton:
    return InlineKeyboardButton(text=text, url=url) if url else InlineKeyboardButton(text=text, callback_data=data)


def _markup(buttons: Keyboard | None) -> dict[str, Any]:
    return {"reply_markup": buttons} if buttons is not None else {}


def _mode(content: Content) -> dict[str, Any]:
    return {"parse_mode": str(content.parse_mode)} if content.parse_mode else {}


def _reply(content: Content) -> dict[str, Any]:
    """Return the parameters of a reply. A message that is gone meanwhile does not keep this one from being sent."""
    message_id = content.reply_to.partition(",")[0]
    if not message_id.isdecimal():
        return {}
    return {"reply_parameters": ReplyParameters(message_id=int(message_id), allow_sending_without_reply=True)}


def _cut(message: Message, content: Content, longest: int) -> tuple[str, tuple[str, ...]]:
    text = cut_text(message.text, content.parse_mode, longest)
    return text, () if text == message.text else (Feature.TEXT_END,)
