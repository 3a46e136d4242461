"""The message of a `send` or an `ask`: its text, its buttons, its files, and the messages of the chat that it concerns
(C-08, C-09, C-40 to C-48). Pure, but for a look at the files.

A local file must be below one of the allowed folders. A file that is not there, is outside, or is too large is left out
with a warning; the rest of the message is sent.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import tzinfo
from pathlib import Path
from typing import Annotated

from msgspec import Struct

from core.errors import Invalid
from core.model.content import TYPES_BY_ENDING, Attachment, AttachmentType, Content, ParseMode
from core.model.content import Button as ContentButton
from core.model.delivery import NewDelivery, Sender
from core.model.text.text_marks import cut_text
from core.model.user_files import inner_path
from core.orders.check import check_content
from scenarios.bot.button_data import LONGEST_DATA, Button, InlineRows, is_turn, jump_data, normalise
from scenarios.bot.data import Data
from scenarios.bot.event_fields import Event
from scenarios.engine.triggers import chat_kind, source_of
from scenarios.placeholders.values import as_list
from scenarios.schema import Attributes, Seen, conversion, types
from scenarios.schema.attributes import Flag, Text, Verbatim
from scenarios.words import Sentence, SentenceError, sentence

LONGEST_TEXT = 4096
LONGEST_CAPTION = 1024
"""The longest caption, in UTF-16 code units, that Telegram's Bot API shows; longer texts are cut (C-46)."""

LARGEST_FILE = 2_000_000_000
"""Bytes; a file of this size or more is left out. No provider takes it."""

_ADDRESS = re.compile(r"(https?|tg|mailto)://?\S+", re.IGNORECASE)
_FILE_ADDRESS = re.compile(r"https?://\S+", re.IGNORECASE)


class ReplyKeyboard(Struct, frozen=True):
    """The keyboard in place of the person's own; without rows it is removed. `asking`: the texts of the buttons that
    ask for the person's contact.
    """

    rows: tuple[tuple[str, ...], ...]
    asking: tuple[str, ...] = ()


def inline_rows(rows: Data) -> InlineRows:
    """Return the buttons below a message. A text sends its normalised text; a mapping leads to a scenario or an
    address."""
    return tuple(tuple(_buttons(row)) for row in as_list(rows) if row)


def reply_keyboard(rows: Data) -> ReplyKeyboard:
    """Return the keyboard of rows of texts, or of `{text: request_contact}`."""
    labels = [list(_labels(row)) for row in as_list(rows) if row]
    asking = tuple(label for row in labels for label, goal in row if goal == types.REQUEST_CONTACT)
    return ReplyKeyboard(tuple(tuple(label for label, _ in row) for row in labels), asking)


def _labels(row: Data) -> Iterator[tuple[str, str]]:
    """Emit the text of each button, and what it does besides writing its text, or ""."""
    for item in as_list(row):
        if isinstance(item, Mapping):
            yield from ((str(label), str(goal)) for label, goal in item.items())
        else:
            yield str(item), ""


def _buttons(row: Data) -> Iterator[Button]:
    for item in as_list(row):
        if isinstance(item, Mapping):
            yield from (_leading(str(label), str(goal)) for label, goal in item.items())
        else:
            yield {"text": str(item), "data": normalise(str(item))}


def _leading(label: str, goal: str) -> Button:
    if _ADDRESS.fullmatch(goal):
        return {"text": label, "url": goal}
    return {"text": label, "data": goal if is_turn(goal) else jump_data(goal)}


def _inline(value: Data, name: str, zone: tzinfo) -> InlineRows:
    rows = inline_rows(value)
    if any(len(button.get("data", "").encode()) > LONGEST_DATA for row in rows for button in row):
        raise Invalid("BUTTON_TOO_LONG", sentence("button_value_too_long", most=LONGEST_DATA), name)
    return rows


def _reply(value: Data, name: str, zone: tzinfo) -> ReplyKeyboard | None:
    return None if value is None else reply_keyboard(value)


def _message_id(value: Data, name: str, zone: tzinfo) -> int | str | None:
    return value or None if isinstance(value, int) else conversion.text(value, name, zone)


Inline = Annotated[InlineRows, types.KEYBOARD, _inline]
Reply = Annotated[ReplyKeyboard | None, types.KEYS, _reply]
Files = Annotated[Data, types.ATTACHMENT, conversion.anything]
MessageId = Annotated[int | str | None, types.WHOLE, _message_id]


class MessageAttributes(Attributes, frozen=True):
    """The attributes that make a message. None of them is refused: what cannot be used is left out."""

    text: Annotated[Verbatim, Seen(may_be_empty=True)] = ""
    additional_text: Annotated[Verbatim, Seen(may_be_empty=True)] = ""
    inline: Annotated[Inline, Seen(may_be_empty=True)] = ()
    reply: Annotated[Reply, Seen(may_be_empty=True)] = None
    message_reply: Annotated[Flag, Seen()] = False
    callback_edit: Annotated[Flag, Seen()] = True
    remove: Annotated[Flag, Seen()] = False
    attachment: Annotated[Files, Seen(may_be_empty=True)] = None
    parse_mode: Annotated[Text, Seen()] = ""
    private_answer: Annotated[Flag, Seen()] = False
    exact_message_id: Annotated[MessageId, Seen(may_be_empty=True)] = None
    remove_message_id: Annotated[MessageId, Seen()] = None


class BotMessage(Struct, frozen=True, omit_defaults=True):
    """A message of the bot. `attachment`: as an author wrote it. The fields after it: the options of `send`."""

    text: str
    attachment: Data = None
    inline: InlineRows = ()
    reply: tuple[tuple[str, ...], ...] | None = None
    request_contact: tuple[str, ...] = ()
    parse_mode: str = ""
    message_reply: bool = False
    callback_edit: bool = True
    remove: bool = False
    private_answer: bool = False
    exact_message_id: int | str | None = None
    remove_message_id: int | str | None = None

    @property
    def mode(self) -> ParseMode:
        return parse_mode(self.parse_mode)


_OPTIONS = (
    *("parse_mode", "message_reply", "callback_edit", "remove", "private_answer"),
    *("exact_message_id", "remove_message_id"),
)


def message(written: MessageAttributes, has_files: bool | None = None) -> BotMessage | None:
    """Return the message; None if nothing can be sent (C-47). `has_files`: whether files of `attachment` can be sent;
    None: they are not looked at.

    `inline` wins over `reply`. The text is cut to what people see, with `additional_text` behind it (C-45).
    """
    has_files = bool(written.attachment) if has_files is None else has_files
    longest = LONGEST_CAPTION if has_files else LONGEST_TEXT
    text = cut_text(f"{written.text}{written.additional_text}", parse_mode(written.parse_mode), longest)
    if not text.strip() and not has_files:
        return None
    keyboard = None if written.inline else written.reply
    return BotMessage(
        text,
        written.attachment if has_files else None,
        written.inline,
        keyboard.rows if keyboard else None,
        keyboard.asking if keyboard else (),
        *(getattr(written, name) for name in _OPTIONS),
    )


def parse_mode(written: str) -> ParseMode:
    """Return how the marks in a text are written, HTML if nothing is said."""
    return ParseMode.MARKDOWN_V2 if written.casefold() == "markdownv2" else ParseMode.HTML


class _LeftOut(SentenceError):
    """This file is not sent, for this reason."""


def attachments_of(written: Data, folders: Sequence[Path], warn: Callable[[Sentence], None]) -> Sequence[Attachment]:
    """Return the files that `attachment` names, in the author's order (C-44); a warning names each that is left out.
    Names are relative to the first of `folders`; all of them may hold files.
    """
    found: list[Attachment] = []
    for name, kind, is_id in _entries(written):
        try:
            found.append(_attachment(name, kind, () if is_id else folders))
        except _LeftOut as reason:
            warn(sentence("not_sent", text=reason.said))
    return found


def _entries(written: Data) -> Iterator[tuple[str, str, bool]]:
    """Emit the name of each file, its type if it is written, and whether it is a `file_id`, which never names a local
    file: it may come from an event.
    """
    for item in written if isinstance(written, list | tuple) else [written]:
        if isinstance(item, Mapping):
            file = item.get("file")
            yield str(file or item.get("file_id") or ""), str(item.get("type") or ""), not file
        elif item not in (None, ""):
            yield str(item), "", False


def _attachment(name: str, kind: str, folders: Sequence[Path]) -> Attachment:
    """Return an attachment. `folders`: empty for a name that is no local file. Raises _LeftOut."""
    name = name.strip()
    if _FILE_ADDRESS.fullmatch(name):
        return Attachment(_type(kind, name.partition("?")[0]), url=name)
    if not folders or (not Path(name).suffix and "/" not in name):
        return Attachment(_type(kind, name), provider_id=name)
    return Attachment(_type(kind, name), path=str(_local(name, folders)))


def _type(kind: str, name: str) -> AttachmentType:
    """Return the type as written, or by the ending of the name; a document if neither is known."""
    if kind in tuple(AttachmentType):
        return AttachmentType(kind)
    return TYPES_BY_ENDING.get(Path(name).suffix.lower(), AttachmentType.DOCUMENT)


def _local(name: str, folders: Sequence[Path]) -> Path:
    """Return the absolute path of a file that may be sent. Raises _LeftOut."""
    try:
        path = inner_path(folders[0] / name, *folders)
        if path is None:
            raise _LeftOut(sentence("outside_bot_folder", name=name))
        if not path.is_file():
            raise _LeftOut(sentence("no_file", name=name))
        if path.stat().st_size >= LARGEST_FILE:
            raise _LeftOut(sentence("larger_than_gb", name=name))
    except (OSError, ValueError, RuntimeError) as error:  # a name that is too long, or links in a circle
        raise _LeftOut(sentence("cannot_read", name=repr(name), why=str(error))) from None
    return path


# as the courier of the channel shows it


def content_of(said: BotMessage, attachments: Sequence[Attachment], event: Event, *, same_chat: bool) -> Content:
    """Return the content of a message. `same_chat`: it goes to the chat of the event, so it may refer to messages
    there."""
    place = _place(said, event) if same_chat else {}
    return Content(
        parse_mode=said.mode,
        inline=tuple(tuple(_button(button) for button in row) for row in said.inline),
        reply=said.reply,
        request_contact=said.request_contact,
        attachments=tuple(attachments),
        **place,
    )


def refusal_of(said: BotMessage) -> Invalid | None:
    """Return why no delivery may have this message; None if one may. Files are not looked at."""
    content = content_of(said, (), {}, same_chat=False)
    try:
        check_content(NewDelivery("", Sender("bot"), said.text or "x", (), (), content=content))
    except Invalid as refusal:
        return refusal
    return None


def is_private(said: BotMessage, event: Event) -> bool:
    """Return whether the message goes to the person instead of the group in which the event was."""
    return said.private_answer and chat_kind(event) == "group"


def _place(said: BotMessage, event: Event) -> dict[str, str]:
    """Return the messages of the chat that this one concerns: message_reply wins over an edit, and that over
    `remove`."""
    of_event = _id(event.get("message_id"))
    removed = _id(said.remove_message_id)
    if said.message_reply:
        found = {"reply_to": of_event}
    elif edited := _edited(said, event, of_event):
        found = {"edit": edited}
    else:
        removed = removed or (of_event if said.remove else "")
        found = {}
    return {**found, "remove": removed} if removed else found


def _edited(said: BotMessage, event: Event, of_event: str) -> str:
    """Return the message to edit; "" for a new message. A pressed button edits its message unless `callback_edit` is
    false."""
    edits = source_of(event) == "callback" and said.callback_edit
    return _id(said.exact_message_id) or (of_event if edits else "")


def _button(button: Button) -> ContentButton:
    """Return a button. A text without letters and digits, such as an emoji, is normalised to nothing; it is its own
    data.
    """
    url = button.get("url", "")
    return ContentButton(button["text"], "" if url else button.get("data") or button["text"], url)


def _id(value: Data) -> str:
    return "" if value in (None, "", 0) else str(value)
