"""The content of a delivery besides its text, in requests and responses.

A caller names files by URL, by the provider's id or by the id of an upload, never by a path of the server, and edits
and removes no messages.
"""

from collections.abc import Sequence
from pathlib import PurePath
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from core.model.content import Attachment, AttachmentType, Button, Content, ParseMode
from core.model.field_types import NOT_BLANK, UploadId

Url = Annotated[str, Meta(min_length=1, max_length=2048, pattern="^https?://", description="http or https")]
ButtonText = Annotated[str, Meta(min_length=1, max_length=256, pattern=NOT_BLANK, description="not only white space")]
MessageId = Annotated[str, Meta(min_length=1, max_length=64, description="the provider's id of a message in this chat")]


class ButtonRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """A button below the message: a press sends `data` to the bot, or opens `url`. Exactly one of the two."""

    text: ButtonText
    data: Annotated[str, Meta(min_length=1, max_length=256)] | UnsetType = UNSET
    url: Url | UnsetType = UNSET


class AttachmentRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """A file: exactly one of `url`, `provider_id`, the id by which the channel's provider knows it, and `file`, the id
    that `POST /v1/files` has returned.
    """

    type: AttachmentType
    url: Url | UnsetType = UNSET
    provider_id: Annotated[str, Meta(min_length=1, max_length=512)] | UnsetType = UNSET
    file: UploadId | UnsetType = UNSET


class ContentRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """The content of the delivery besides its text. What a channel cannot show is named in the outcome as `not_shown`.

    `reply`: rows of buttons in place of the recipient's keyboard; an empty list removes it. `request_contact`: the
    texts of those whose press shares the recipient's contact with the bot.
    """

    parse_mode: Annotated[Literal["HTML", "MarkdownV2"], Meta(description="of the text")] | UnsetType = UNSET
    inline: Annotated[list[list[ButtonRequest]], Meta(max_length=100)] | UnsetType = UNSET
    reply: Annotated[list[list[ButtonText]], Meta(max_length=100)] | UnsetType = UNSET
    request_contact: Annotated[list[ButtonText], Meta(max_length=100)] | UnsetType = UNSET
    attachments: (
        Annotated[list[AttachmentRequest], Meta(max_length=50, extra={"long": "TOO_MANY_ATTACHMENTS"})] | UnsetType
    ) = UNSET
    reply_to: MessageId | UnsetType = UNSET

    def content(self) -> Content:
        return Content(
            parse_mode=ParseMode(self.parse_mode or ""),
            inline=[[Button(one.text, one.data or "", one.url or "") for one in row] for row in self.inline or ()],
            reply=None if isinstance(self.reply, UnsetType) else self.reply,
            request_contact=self.request_contact or (),
            attachments=[
                Attachment(one.type, url=one.url or "", provider_id=one.provider_id or "", file=one.file or "")
                for one in self.attachments or ()
            ],
            reply_to=self.reply_to or "",
        )


class AttachmentResponse(Struct):
    """A file. `name`: of a file of the server, or of an uploaded one."""

    type: AttachmentType
    url: str | UnsetType = UNSET
    provider_id: str | UnsetType = UNSET
    file: str | UnsetType = UNSET
    name: str | UnsetType = UNSET

    @classmethod
    def of(cls, given: Attachment) -> "AttachmentResponse":
        name = given.name or PurePath(given.path).name
        return cls(given.type, given.url or UNSET, given.provider_id or UNSET, given.file or UNSET, name or UNSET)


class ContentResponse(Struct):
    """The content of a delivery besides its text, as it was given; absent fields are empty."""

    parse_mode: ParseMode | UnsetType = UNSET
    inline: Sequence[Sequence[Button]] | UnsetType = UNSET
    reply: Sequence[Sequence[str]] | UnsetType = UNSET
    request_contact: Sequence[str] | UnsetType = UNSET
    attachments: list[AttachmentResponse] | UnsetType = UNSET
    reply_to: str | UnsetType = UNSET
    edit: str | UnsetType = UNSET
    remove: str | UnsetType = UNSET

    @classmethod
    def of(cls, given: Content) -> "ContentResponse":
        reply = UNSET if given.reply is None else given.reply
        contact = given.request_contact or UNSET
        attachments = [AttachmentResponse.of(one) for one in given.attachments] or UNSET
        ids = given.reply_to or UNSET, given.edit or UNSET, given.remove or UNSET
        return cls(given.parse_mode or UNSET, given.inline or UNSET, reply, contact, attachments, *ids)
