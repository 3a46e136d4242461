"""What a delivery has besides its text, in responses."""

from collections.abc import Sequence
from pathlib import PurePath

from msgspec import UNSET, Struct, UnsetType

from core.model.content import Attachment, AttachmentType, Button, Content, ParseMode


class AttachmentResponse(Struct):
    """A file. `name`: of a file of the server."""

    type: AttachmentType
    url: str | UnsetType = UNSET
    provider_id: str | UnsetType = UNSET
    name: str | UnsetType = UNSET

    @classmethod
    def of(cls, given: Attachment) -> "AttachmentResponse":
        return cls(given.type, given.url or UNSET, given.provider_id or UNSET, PurePath(given.path).name or UNSET)


class ContentResponse(Struct):
    """What a delivery has besides its text, as it was given; absent fields are empty."""

    parse_mode: ParseMode | UnsetType = UNSET
    inline: Sequence[Sequence[Button]] | UnsetType = UNSET
    reply: Sequence[Sequence[str]] | UnsetType = UNSET
    attachments: list[AttachmentResponse] | UnsetType = UNSET
    reply_to: str | UnsetType = UNSET
    edit: str | UnsetType = UNSET
    remove: str | UnsetType = UNSET

    @classmethod
    def of(cls, given: Content) -> "ContentResponse":
        reply = UNSET if given.reply is None else given.reply
        attachments = [AttachmentResponse.of(one) for one in given.attachments] or UNSET
        ids = given.reply_to or UNSET, given.edit or UNSET, given.remove or UNSET
        return cls(given.parse_mode or UNSET, given.inline or UNSET, reply, attachments, *ids)
