"""The content of a delivery besides its text, and what of it a channel shows. Frozen values, pure.

Content is marks in the text, buttons, files, and the message that it concerns. A courier declares what its channel can
show and within which limits (`Display`); a preview shows a delivery by it, and the rest is recorded in the history
(`Feature`).
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from msgspec import Struct

from core.model.json_form import compact_json

BEGINNING = "{beginning}"


class ParseMode(StrEnum):
    """The notation of marks in the text; `PLAIN`: there are none."""

    PLAIN = ""
    HTML = "HTML"
    MARKDOWN_V2 = "MarkdownV2"


class AttachmentType(StrEnum):
    """The form in which a channel shows a file."""

    PHOTO = "photo"
    VIDEO = "video"
    DOCUMENT = "document"
    ANIMATION = "animation"
    AUDIO = "audio"
    VOICE = "voice"


TYPES_BY_ENDING: Mapping[str, AttachmentType] = {
    **dict.fromkeys((".jpg", ".jpeg", ".png", ".webp"), AttachmentType.PHOTO),
    **dict.fromkeys((".mp4", ".mov", ".mkv", ".avi", ".webm"), AttachmentType.VIDEO),
    ".gif": AttachmentType.ANIMATION,
    **dict.fromkeys((".mp3", ".m4a", ".wav", ".flac"), AttachmentType.AUDIO),
    **dict.fromkeys((".ogg", ".oga", ".opus"), AttachmentType.VOICE),
}
"""The type of a file by the ending of its name; any other is a document."""


class Feature(StrEnum):
    """A feature that a channel may show besides plain text; an attachment's feature is its type.

    `TEXT_END`: the end of a text that is longer than the channel allows. `ANSWER`: buttons whose presses answer the
    question of the delivery.
    """

    PARSE_MODE = "parse_mode"
    INLINE = "inline"
    REPLY = "reply"
    REQUEST_CONTACT = "request_contact"
    REPLY_TO = "reply_to"
    EDIT = "edit"
    REMOVE = "remove"
    PHOTO = "photo"
    VIDEO = "video"
    DOCUMENT = "document"
    ANIMATION = "animation"
    AUDIO = "audio"
    VOICE = "voice"
    TEXT_END = "text_end"
    ANSWER = "answer"


EVERY_FEATURE = frozenset(Feature) - {Feature.ANSWER}
"""The parts that a message can have. A channel that receives presses shows `ANSWER`, too."""
_BUTTONS = frozenset({Feature.INLINE, Feature.REPLY})


class Button(Struct, frozen=True, omit_defaults=True):
    """A button below a message: a press sends `data` to the bot, or opens `url`."""

    text: str
    data: str = ""
    url: str = ""


class Attachment(Struct, frozen=True, omit_defaults=True):
    """A file: exactly one of `path` (absolute, on the courier's machine), `url`, `provider_id` (of the channel) and
    `file`, the id of an uploaded one. `name`: of an uploaded file.
    """

    type: AttachmentType
    path: str = ""
    url: str = ""
    provider_id: str = ""
    file: str = ""
    name: str = ""


class Content(Struct, frozen=True, omit_defaults=True):
    """`inline`: rows of buttons below the message. `reply`: rows of texts in place of the person's keyboard; an empty
    one removes it; None leaves it. `request_contact`: those of these texts whose press shares the person's own contact.

    `reply_to`, `edit`, `remove`: ids of messages in the same chat. An edit that the provider refuses becomes a new
    message. `remove` is removed before the message is sent.
    """

    parse_mode: ParseMode = ParseMode.PLAIN
    inline: Sequence[Sequence[Button]] = ()
    reply: Sequence[Sequence[str]] | None = None
    attachments: Sequence[Attachment] = ()
    reply_to: str = ""
    edit: str = ""
    remove: str = ""
    request_contact: Sequence[str] = ()


class KeyboardLimits(Struct, frozen=True):
    """The limits of a keyboard. A row of more than `width` buttons goes on in the next row; `wide`: the same of a row
    with a link or a request for the contact, 0 if it is like others. `label`: characters of a button; `data`:
    characters of what a press sends, as JSON; `data_bytes`: its bytes; `link`: characters of an address; the last two
    0 for no limit.
    """

    inline_rows: int
    inline_buttons: int
    reply_rows: int
    reply_buttons: int
    width: int
    label: int
    data: int
    data_bytes: int = 0
    wide: int = 0
    link: int = 0

    def fits(self, content: Content) -> bool:
        """Return whether a keyboard can have these buttons."""
        inline = list(self.rows(content.inline))
        reply = list(self.rows(content.reply or (), content.request_contact))
        return (
            _is_within(inline, self.inline_rows, self.inline_buttons)
            and _is_within(reply, self.reply_rows, self.reply_buttons)
            and all(self._holds(button) for row in inline for button in row)
            and all(1 <= len(label) <= self.label for row in reply for label in row)
        )

    def as_text(self, content: Content) -> frozenset[Feature]:
        """Return the buttons if a keyboard cannot have them."""
        return frozenset() if self.fits(content) else _BUTTONS

    def rows(self, rows: Sequence[Sequence[Any]], asked: Sequence[str] = ()) -> list[Sequence[Any]]:
        """Return the rows as they are shown, none too long. `asked`: the labels that ask for the contact."""
        sized = [(row, self._width(row, asked)) for row in rows]
        return [row[start : start + width] for row, width in sized for start in range(0, len(row), width)]

    def _width(self, row: Sequence[Any], asked: Sequence[str]) -> int:
        has_wide = any(one.url if isinstance(one, Button) else one in asked for one in row)
        return self.wide if self.wide and has_wide else self.width

    def _holds(self, button: Button) -> bool:
        if not 1 <= len(button.text) <= self.label:
            return False
        if button.url:
            is_short = not self.link or len(button.url) <= self.link
            return is_short and button.url.startswith(("http://", "https://"))
        is_short = not self.data_bytes or len(button.data.encode()) <= self.data_bytes
        return is_short and len(compact_json(button.data)) <= self.data


def _is_within(rows: Sequence[Sequence[Any]], most_rows: int, most_buttons: int) -> bool:
    return len(rows) <= most_rows and sum(map(len, rows)) <= most_buttons


class Limits(Struct, frozen=True, omit_defaults=True):
    """The limits of what a channel shows. `text` and `caption` (the text of a message with a file): UTF-16 code units,
    0 for no limit. `splits`: a longer text without content goes in several messages; `splits_content`: one with
    content, too. `in_sms`: a text is sent and paid in parts; `numbers`: what people write comes back, so they can
    answer a question by its numbers. `price`: of one part, with its currency, as the operator has written it.
    `keyboard`: None for no limits. `follows_group`: a group of files has no keyboard; the text follows it with that.
    `subject`: of a mail, with `BEGINNING` in place of the beginning of its text.
    """

    text: int = 0
    caption: int = 0
    splits: bool = False
    splits_content: bool = False
    in_sms: bool = False
    numbers: bool = False
    price: str = ""
    keyboard: KeyboardLimits | None = None
    follows_group: bool = False
    subject: str = ""


class Display(Struct, frozen=True, omit_defaults=True):
    """The display of a delivery in a channel. `as_text`: the features that become lines of the text. `answer_url`:
    where a link to answer leads, without its token; "" if there is no such address. `is_mailed`: its messages
    are mails, and replies to them are received. `subscribe_key`: the public key with which browsers subscribe to its
    messages, "" if it has no subscriptions; `push_service`: the address of the only one that it uses, "" for any.
    """

    shows: frozenset[Feature] = frozenset()
    as_text: frozenset[Feature] = frozenset()
    limits: Limits = Limits()
    answer_url: str = ""
    is_mailed: bool = False
    subscribe_key: str = ""
    push_service: str = ""

    def written_as_text(self, content: Content) -> frozenset[Feature]:
        """Return the features that become lines of the text in this content: also buttons that do not fit into the
        keyboard.
        """
        keyboard = self.limits.keyboard
        return self.as_text if keyboard is None else self.as_text | keyboard.as_text(content)
