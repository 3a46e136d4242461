"""The content of a delivery besides its text: marks in the text, buttons, files, and the message that it concerns.

Frozen values. Each courier shows what its channel can show; the rest is recorded in the history (`Feature`).
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum

from msgspec import Struct


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
