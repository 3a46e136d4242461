"""The requests of one message, in order: texts, files, buttons. The first is a reply if the message is one."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from couriers.sending import (
    Attachment,
    AttachmentType,
    Button,
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
from couriers.telegram_bot.library import TelegramMethod, methods, types

LONGEST_TEXT = 4096
LONGEST_CAPTION = 1024
"""UTF-16 code units of the text without marks. Source: core.telegram.org/bots/api#sendmessage, #sendphoto."""

MAX_UPLOAD = 50 * 1024 * 1024
"""Bytes of an uploaded file. Source: core.telegram.org/bots/api#sending-files."""

Request = TelegramMethod[Any]
Keyboard = types.InlineKeyboardMarkup | types.ReplyKeyboardMarkup | types.ReplyKeyboardRemove
Fields = Mapping[str, Any]
_NOTHING: Fields = {}

_SEND: Mapping[AttachmentType, Callable[..., Request]] = {
    AttachmentType.PHOTO: methods.SendPhoto,
    AttachmentType.VIDEO: methods.SendVideo,
    AttachmentType.DOCUMENT: methods.SendDocument,
    AttachmentType.ANIMATION: methods.SendAnimation,
    AttachmentType.AUDIO: methods.SendAudio,
    AttachmentType.VOICE: methods.SendVoice,
}
_MEDIA: Mapping[AttachmentType, Callable[..., types.InputMedia]] = {
    AttachmentType.PHOTO: types.InputMediaPhoto,
    AttachmentType.VIDEO: types.InputMediaVideo,
    AttachmentType.DOCUMENT: types.InputMediaDocument,
    AttachmentType.ANIMATION: types.InputMediaAnimation,
    AttachmentType.AUDIO: types.InputMediaAudio,
}


class BotRequests(NamedTuple):
    """`not_shown`: as in `couriers.sending.Sent`."""

    requests: Sequence[Request]
    not_shown: tuple[str, ...] = ()


def send_requests(message: Message) -> BotRequests:
    """Return the requests that send a message. Without content its text is sent in as many parts as it needs."""
    content = message.content
    if content is None:
        return BotRequests(
            [methods.SendMessage(chat_id=message.address, text=text) for text in split_text(message.text)]
        )
    files, not_shown = find_files(content.attachments, MAX_UPLOAD)
    if content.request_contact and not is_private(message.address):
        content = without_contact_buttons(content)
        not_shown.append(Feature.REQUEST_CONTACT)  # the Bot API refuses it
    if content.inline and content.reply is not None:
        not_shown.append(Feature.REPLY)  # a message has one keyboard
    sent = _file_requests(message, content, media_groups(files)) if files else _text_request(message, content)
    return BotRequests(sent.requests, (*not_shown, *sent.not_shown))


def _text_request(message: Message, content: Content) -> BotRequests:
    if not message.text.strip():
        return BotRequests(())
    request, not_shown = _text(message, content, _reply(content))
    return BotRequests([request], not_shown)


def _text(message: Message, content: Content, more: Fields) -> tuple[Request, tuple[str, ...]]:
    text, not_shown = _cut(message, content, LONGEST_TEXT)
    fields = {**_mode(content), **more, **_markup(content)}
    return methods.SendMessage(chat_id=message.address, text=text, **fields), not_shown


def _file_requests(message: Message, content: Content, files: Sequence[Sequence[File]]) -> BotRequests:
    """Return the requests for the files. The text is the first caption. A group cannot have a keyboard: then the text
    follows with it.
    """
    if keyboard(content) and len(files[0]) > 1:
        return _groups_before_text(message, content, files)
    text, not_shown = _cut(message, content, LONGEST_CAPTION)
    caption = {"caption": text, **_mode(content)} if text else {}
    first = _file_request(message, files[0], caption, {**_reply(content), **_markup(content)})
    return BotRequests([first, *(_file_request(message, group) for group in files[1:])], not_shown)


def _groups_before_text(message: Message, content: Content, files: Sequence[Sequence[File]]) -> BotRequests:
    requests = [_file_request(message, files[0], {}, _reply(content))]
    requests += [_file_request(message, group) for group in files[1:]]
    if not message.text.strip():
        return BotRequests(requests, (Feature.INLINE if content.inline else Feature.REPLY,))
    last, not_shown = _text(message, content, {})
    return BotRequests([*requests, last], not_shown)


def _file_request(
    message: Message, files: Sequence[File], caption: Fields = _NOTHING, more: Fields = _NOTHING
) -> Request:
    """Return the request that sends a file, or several as one group, the first with the caption."""
    attachments = [file.attachment for file in files]
    if len(attachments) > 1:
        media = [_media(one, caption if one is attachments[0] else {}) for one in attachments]
        return methods.SendMediaGroup(chat_id=message.address, media=media, **more)
    kind = attachments[0].type
    return _SEND[kind](chat_id=message.address, **{str(kind): _input_file(attachments[0])}, **caption, **more)


def _media(attachment: Attachment, caption: Fields) -> Any:
    return _MEDIA[attachment.type](media=_input_file(attachment), **caption)


def _input_file(attachment: Attachment) -> types.FSInputFile | str:
    """Return the file as Telegram takes it: uploaded, or named by a URL or by Telegram's id."""
    return types.FSInputFile(attachment.path) if attachment.path else attachment.url or attachment.provider_id


def edit_requests(message: Message, content: Content) -> Iterator[tuple[Request, tuple[str, ...]]]:
    """Emit the requests of which one edits the message, and what each does not show.

    There are none if an edit cannot show the content: a reply keyboard, a voice and several files need a new message.
    """
    message_id = edited_message(content)
    if content.reply is not None or not message_id.isdecimal():
        return
    target = {"chat_id": message.address, "message_id": int(message_id), **_markup(content)}
    files, missing = find_files(content.attachments, MAX_UPLOAD)
    for request, not_shown in _file_edit(message, content, files, target) if files else _edit(message, content, target):
        yield request, (*missing, *not_shown)


def _file_edit(
    message: Message, content: Content, files: Sequence[File], target: Fields
) -> Iterator[tuple[Request, tuple[str, ...]]]:
    """Emit the request that exchanges the file together with the caption, if Telegram can."""
    if len(files) > 1 or files[0].attachment.type is AttachmentType.VOICE:
        return
    text, not_shown = _cut(message, content, LONGEST_CAPTION)
    media = _media(files[0].attachment, {"caption": text, **_mode(content)} if text else {})
    yield methods.EditMessageMedia(**target, media=media), not_shown


def _edit(message: Message, content: Content, target: Fields) -> Iterator[tuple[Request, tuple[str, ...]]]:
    """Emit the requests that leave the file as it is; the last is for a message with a file."""
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
        return inline_keyboard(content.inline)
    if content.reply is None:
        return None
    rows = [[_key(text, text in content.request_contact) for text in row] for row in content.reply if row]
    if not rows:
        return types.ReplyKeyboardRemove(remove_keyboard=True)
    return types.ReplyKeyboardMarkup(keyboard=rows, resize_keyboard=True)


def inline_keyboard(rows: Sequence[Sequence[Button]]) -> types.InlineKeyboardMarkup:
    return types.InlineKeyboardMarkup(inline_keyboard=[list(map(_button, row)) for row in rows])


def is_private(address: str) -> bool:
    """Return whether a chat is between a person and the bot; groups have negative ids, channels names."""
    return address.isdecimal()


def _key(text: str, asks_for_contact: bool) -> types.KeyboardButton:
    return types.KeyboardButton(text=text, request_contact=asks_for_contact or None)


def _button(button: Button) -> types.InlineKeyboardButton:
    if button.url:
        return types.InlineKeyboardButton(text=button.text, url=button.url)
    return types.InlineKeyboardButton(text=button.text, callback_data=button.data)


def _markup(content: Content) -> Fields:
    found = keyboard(content)
    return {"reply_markup": found} if found else {}


def _mode(content: Content) -> Fields:
    return {"parse_mode": str(content.parse_mode)} if content.parse_mode else {}


def _reply(content: Content) -> Fields:
    """Return the parameters of a reply. A message that is gone meanwhile does not keep this one from being sent."""
    message_id = content.reply_to.partition(",")[0]
    if not message_id.isdecimal():
        return {}
    reply = types.ReplyParameters(message_id=int(message_id), allow_sending_without_reply=True)
    return {"reply_parameters": reply}


def _cut(message: Message, content: Content, longest: int) -> tuple[str, tuple[str, ...]]:
    text = cut_text(message.text, content.parse_mode, longest)
    return text, () if text == message.text else (Feature.TEXT_END,)
