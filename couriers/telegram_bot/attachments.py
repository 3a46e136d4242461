"""The files of a message: which of them can be sent, and in which requests they go (C-44)."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from aiogram.types import FSInputFile

from core.courier import Attachment, AttachmentType

MAX_UPLOAD = 50 * 1024 * 1024
"""Bytes of an uploaded file. Source: core.telegram.org/bots/api#sending-files."""

MAX_GROUP = 10
_VISUAL = (AttachmentType.PHOTO, AttachmentType.VIDEO)
_IN_GROUPS = (*_VISUAL, AttachmentType.DOCUMENT)


def find_files(attachments: Sequence[Attachment]) -> tuple[list[Attachment], list[str]]:
    """The attachments that can be sent, and what is missing because its file does not exist, cannot be read, or is too
    large: "photo menu.png".
    """
    found = [one for one in attachments if _can_be_sent(one)]
    return found, [f"{one.type} {Path(one.path).name}" for one in attachments if one not in found]


def _can_be_sent(attachment: Attachment) -> bool:
    path = Path(attachment.path)
    return not attachment.path or (path.is_file() and os.access(path, os.R_OK) and path.stat().st_size <= MAX_UPLOAD)


def groups(attachments: Sequence[Attachment]) -> list[Sequence[Attachment]]:
    """The attachments of each request: photos and videos in groups of at most 10, documents in such groups, and each of
    the others alone.
    """
    visual = [one for one in attachments if one.type in _VISUAL]
    documents = [one for one in attachments if one.type is AttachmentType.DOCUMENT]
    others = [one for one in attachments if one.type not in _IN_GROUPS]
    return [*_slices(visual), *_slices(documents), *([one] for one in others)]


def _slices(attachments: Sequence[Attachment]) -> Iterator[Sequence[Attachment]]:
    return (attachments[start : start + MAX_GROUP] for start in range(0, len(attachments), MAX_GROUP))


def input_file(attachment: Attachment) -> FSInputFile | str:
    """The file as aiogram takes it: uploaded, or named by a URL or by Telegram's id."""
    return FSInputFile(attachment.path) if attachment.path else attachment.url or attachment.provider_id
