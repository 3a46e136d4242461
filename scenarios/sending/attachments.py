"""The files of a message: `attachment` as an author writes it → attachments of a delivery (C-44).

A local file must be below one of the allowed folders. A file that is not there, is outside, or is too large is left out
with a warning; the rest of the message is sent.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from core.model.content import TYPES_BY_ENDING, Attachment, AttachmentType
from core.model.user_files import inner_path
from scenarios.bot.data import Data
from scenarios.words import SentenceError, Text, sentence

LARGEST_FILE = 2_000_000_000
"""Bytes; a file of this size or more is left out. No provider takes it."""

_ADDRESS = re.compile(r"https?://\S+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Files:
    """The files that can be sent, in the author's order, and the reasons for those left out."""

    attachments: Sequence[Attachment]
    warnings: Sequence[Text]


class _LeftOut(SentenceError):
    """This file is not sent, for this reason."""


def resolve(written: Data, folders: Sequence[Path]) -> Files:
    """Return the files that `written` names. Names are relative to the first of `folders`; all of them may hold
    files."""
    found: list[Attachment] = []
    warnings: list[Text] = []
    for name, kind, is_id in _entries(written):
        try:
            found.append(_attachment(name, kind, () if is_id else folders))
        except _LeftOut as reason:
            warnings.append(sentence("not_sent", text=reason.said))
    return Files(found, warnings)


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
    if _ADDRESS.fullmatch(name):
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
