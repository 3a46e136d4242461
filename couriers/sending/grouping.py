"""The files of a message: which of them can be sent, and which go together in Telegram (C-44)."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from core.model.content import Attachment, AttachmentType
from core.model.user_files import has_no_link
from couriers.sending.content.files import label_of

MAX_GROUP = 10
_VISUAL = (AttachmentType.PHOTO, AttachmentType.VIDEO)
_IN_GROUPS = (*_VISUAL, AttachmentType.DOCUMENT)


class File(NamedTuple):
    """An attachment and its number in the message, from 0; the number is the same in each attempt."""

    number: int
    attachment: Attachment


def find_files(attachments: Sequence[Attachment], largest: int) -> tuple[list[File], list[str]]:
    """Return the attachments that can be sent, and what is missing because its file does not exist, cannot be read, or
    has more than `largest` bytes: "photo menu.png".
    """
    files = [File(number, one) for number, one in enumerate(attachments)]
    found = [file for file in files if _can_be_sent(file.attachment, largest)]
    return found, [label_of(file.attachment) for file in files if file not in found]


def _can_be_sent(attachment: Attachment, largest: int) -> bool:
    path = Path(attachment.path)
    return not attachment.path or (_is_readable(path) and path.stat().st_size <= largest)


def _is_readable(path: Path) -> bool:
    return has_no_link(path) and path.is_file() and os.access(path, os.R_OK)


def media_groups(files: Sequence[File]) -> list[Sequence[File]]:
    """Return the files of each message or group of messages: photos and videos in groups of at most 10, documents in
    such groups, and each of the others alone.
    """
    visual = [file for file in files if file.attachment.type in _VISUAL]
    documents = [file for file in files if file.attachment.type is AttachmentType.DOCUMENT]
    others = [file for file in files if file.attachment.type not in _IN_GROUPS]
    return [*_slices(visual), *_slices(documents), *([file] for file in others)]


def _slices(files: Sequence[File]) -> Iterator[Sequence[File]]:
    return (files[start : start + MAX_GROUP] for start in range(0, len(files), MAX_GROUP))
