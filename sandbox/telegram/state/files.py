"""The files that an account has uploaded."""

from collections import OrderedDict
from dataclasses import dataclass, field
from secrets import randbits

KEPT_UPLOADS = 200


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file. `kind`: photo, video, document, animation, audio, voice. `content`: of a linked file its URL."""

    kind: str
    name: str
    content: bytes


@dataclass(slots=True)
class Uploads:
    """The files of one account. At capacity the oldest one is dropped."""

    parts: OrderedDict[int, dict[int, bytes]] = field(default_factory=OrderedDict)  # by the client's id
    files: OrderedDict[int, StoredFile] = field(default_factory=OrderedDict)  # by the server's id

    def add_part(self, file_id: int, number: int, content: bytes) -> None:
        self.parts.setdefault(file_id, {})[number] = content
        if len(self.parts) > KEPT_UPLOADS:
            self.parts.popitem(last=False)

    def keep(self, file: StoredFile) -> int:
        file_id = randbits(62)
        self.files[file_id] = file
        if len(self.files) > KEPT_UPLOADS:
            self.files.popitem(last=False)
        return file_id
