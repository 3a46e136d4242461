"""The messages of the community as people see them now: text, buttons and files, edited or deleted.

Both sides of a dialog share its numbers (`conversation_message_id`), which begin with 1 in each dialog.
"""

import json
from collections import Counter, OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sandbox.vk.errors import CallFailed, parameter_error
from sandbox.vk.keyboards import Keyboard, KeyboardButton
from sandbox.vk.uploads import SavedFile

_KEPT = 200_000
_NO_EDIT = 909


@dataclass(frozen=True, slots=True)
class MessageContent:
    """The content of a message. `reply_to`: a number of the same dialog, 0 for none."""

    text: str
    keyboard: Keyboard | None = None
    files: Sequence[SavedFile] = ()
    reply_to: int = 0


@dataclass(frozen=True, slots=True)
class DialogMessage:
    """One message of the community in its current state. `id`: over all dialogs; `number`: in its dialog."""

    id: int
    number: int
    content: MessageContent
    is_edited: bool = False
    is_deleted: bool = False

    def item(self) -> dict[str, Any]:
        """Return the message as methods of the API return it."""
        attachments = [{"type": one.type, one.type: one.fields()} for one in self.content.files]
        return {
            "id": self.id,
            "conversation_message_id": self.number,
            "text": self.content.text,
            "attachments": attachments,
        }

    def shown(self) -> dict[str, Any]:
        """Return the message as JSON for the inbox page."""
        content = self.content
        return {
            "number": self.number,
            "text": content.text,
            "buttons": _rows(content.keyboard) if content.keyboard and content.keyboard.inline else [],
            "files": [{"type": one.type, "name": one.name, "attachment": one.attachment} for one in content.files],
            "reply_to": content.reply_to or None,
            "edited": self.is_edited,
        }


class Dialogs:
    """The newest messages are kept."""

    def __init__(self) -> None:
        self._messages: OrderedDict[tuple[str, int], DialogMessage] = OrderedDict()
        self._numbers: Counter[str] = Counter()
        self._by_id: dict[int, tuple[str, int]] = {}
        self._keyboards: dict[str, Keyboard] = {}

    def next_number(self, peer: str) -> int:
        """Number a message of either side."""
        self._numbers[peer] += 1
        return self._numbers[peer]

    def add(self, peer: str, message: DialogMessage) -> None:
        self._messages[peer, message.number] = message
        self._by_id[message.id] = peer, message.number
        self._set_keyboard(peer, message.content.keyboard)
        if len(self._messages) > _KEPT:
            _, dropped = self._messages.popitem(last=False)
            del self._by_id[dropped.id]

    def _set_keyboard(self, peer: str, keyboard: Keyboard | None) -> None:
        if keyboard is not None and not keyboard.inline:
            self._keyboards[peer] = keyboard

    def get(self, peer: str, number: int) -> DialogMessage | None:
        """Return a message; None if there is none, or it was deleted."""
        message = self._messages.get((peer, number))
        return None if message is None or message.is_deleted else message

    def find(self, peer: str, message_id: int) -> DialogMessage | None:
        """Return the message with this id over all dialogs, also a deleted one."""
        key = self._by_id.get(message_id)
        return self._messages[key] if key and key[0] == peer else None

    def check(self, peer: str, number: int) -> None:
        """Check that a message exists. Raises CallFailed with VK's code 100 if a dialog has had no such message of
        either side.
        """
        if not 1 <= number <= self._numbers[peer]:
            raise parameter_error("message_ids is invalid")

    def edit(self, peer: str, number: int, content: MessageContent) -> None:
        """Replace the content. Raises CallFailed 909 if it is not a message of the community."""
        message = self.get(peer, number)
        if message is None:
            raise CallFailed(_NO_EDIT)
        kept = replace(content, reply_to=message.content.reply_to)
        self._messages[peer, number] = replace(message, content=kept, is_edited=True)
        self._set_keyboard(peer, content.keyboard)

    def delete(self, peer: str, number: int) -> bool:
        """Return whether it was a message of the community."""
        message = self.get(peer, number)
        if message is not None:
            self._messages[peer, number] = replace(message, is_deleted=True)
        return message is not None

    def keyboard(self, peer: str) -> Keyboard | None:
        """Return what stands in place of the person's keyboard."""
        keyboard = self._keyboards.get(peer)
        return keyboard if keyboard and keyboard.rows else None

    def button(self, peer: str, number: int, label: str) -> KeyboardButton:
        """Return the button below a message, or of the person's keyboard if `number` is 0. Raises LookupError."""
        message = self.get(peer, number)
        keyboard = message.content.keyboard if message else self.keyboard(peer)
        buttons = [button for row in (keyboard.rows if keyboard else ()) for button in row]
        found = next((one for one in buttons if label in (one.label, one.payload, _data(one))), None)
        if found is None:
            raise LookupError(f"no button {label!r} in the dialog with {peer}")
        return found

    def pressed(self, peer: str) -> None:
        """Remove a keyboard for one time."""
        if (keyboard := self.keyboard(peer)) and keyboard.one_time:
            del self._keyboards[peer]


def _rows(keyboard: Keyboard) -> list[list[dict[str, str]]]:
    return [[{"text": one.label, "data": one.payload, "url": one.link} for one in row] for row in keyboard.rows]


def _data(button: KeyboardButton) -> str:
    """Return the data in a payload that is an object with one text."""
    payload = json.loads(button.payload) if button.payload else None
    values = list(payload.values()) if isinstance(payload, dict) else []
    return str(values[0]) if len(values) == 1 else ""
