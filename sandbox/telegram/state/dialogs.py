"""The messages of an account's dialogs, in their current state."""

from collections import OrderedDict
from dataclasses import dataclass, field
from secrets import randbits
from typing import Any

KEPT_UPLOADS = 200

KEPT_MESSAGES = 10_000  # of one account


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


@dataclass(frozen=True, slots=True)
class DialogMessage:
    """One message. `markup`: its keyboard, as Telegram's type; None if it has none."""

    id: int
    text: str
    is_own: bool = True
    entities: list[Any] = field(default_factory=list)
    markup: Any = None
    reply_to: int = 0
    is_edited: bool = False
    file: StoredFile | None = None

    @property
    def buttons(self) -> list[list[str]]:
        """Return the texts of its buttons, row by row."""
        return [[button.text for button in row.buttons] for row in getattr(self.markup, "rows", None) or ()]


class Dialogs:
    """The messages of one account, by address and id. At capacity the oldest one is dropped."""

    def __init__(self) -> None:
        self._messages: OrderedDict[tuple[str, int], DialogMessage] = OrderedDict()

    def find(self, address: str, message_id: int) -> DialogMessage | None:
        return self._messages.get((address, message_id))

    def store(self, address: str, message: DialogMessage) -> None:
        self._messages[address, message.id] = message
        if len(self._messages) > KEPT_MESSAGES:
            self._messages.popitem(last=False)

    def of(self, address: str) -> list[DialogMessage]:
        """Return the messages of one dialog, oldest first."""
        return [message for (owner, _), message in self._messages.items() if owner == address]

    def remove(self, ids: list[int], address: str | None = None) -> int:
        """Remove the messages with these ids, of one dialog or of any; return how many there were."""
        found = [key for key in self._messages if key[1] in ids and address in (None, key[0])]
        for key in found:
            del self._messages[key]
        return len(found)
