"""Actions of people in VK: they write, press buttons, read, allow and forbid messages. Each becomes an event.

Source: dev.vk.com, "Community events".
"""

import json
import secrets
import time
from collections import deque
from collections.abc import Sequence
from typing import Any

from sandbox.state import SandboxState
from sandbox.vk.community import Community
from sandbox.vk.errors import parameter_error
from sandbox.vk.events import Events
from sandbox.vk.keyboards import KeyboardButton

_KEPT_ANSWERS = 20
_MAX_OPEN_PRESSES = 1000
_BY_LINK = "chat_invite_user_by_link"


class PeopleActions:
    """Of one community. A peer is a person's id as a text, or that of a chat of several people."""

    def __init__(self, state: SandboxState, community: Community, events: Events) -> None:
        self._state = state
        self._community = community
        self._events = events
        self.with_files: dict[tuple[str, int], dict[str, Any]] = {}
        self._newest: dict[str, dict[str, Any]] = {}
        self._denied: set[str] = set()
        self._presses: dict[str, tuple[str, str]] = {}
        self._answers: dict[str, deque[dict[str, str]]] = {}

    def write(
        self, peer: str, text: str, payload: str = "", *, reply_to: int = 0, files: Sequence[dict[str, Any]] = ()
    ) -> int:
        """Write as a person; return the number of the message in the dialog. `payload`: of a button that wrote it.
        `reply_to`: the number of a message of the community, 0 for none. `files`: as `VkServer.file_of_person` returns
        them. Raises LookupError if there is none.
        """
        quoted = {"reply_message": self._quoted(peer, reply_to)} if reply_to else {}
        pressed = {"payload": payload} if payload else {}
        number = self._say(peer, peer, text=text, attachments=list(files), **pressed, **quoted)
        self._state.count("vk", "written")
        self._state.write("vk", peer, text)
        return number

    def edit(self, peer: str, number: int, text: str) -> None:
        """Edit the newest message of a person in its dialog. Raises LookupError if it is another one."""
        message = self._newest.get(peer)
        if message is None or message["conversation_message_id"] != number:
            raise LookupError(f"{number} is not the newest message of {peer}")
        self._newest[peer] = edited = {**message, "text": text, "update_time": int(time.time())}
        self._events.push("message_edit", edited)

    def _quoted(self, peer: str, number: int) -> dict[str, Any]:
        message = self._community.dialogs.get(peer, number)
        if message is None:
            raise LookupError(f"there is no message {number}")
        return {**message.item(), "peer_id": int(peer), "from_id": -self._events.group, "date": int(time.time())}

    def join(self, person: str, chat: str, *, added_by: str = "") -> None:
        """Join a chat of several people by its link, or be added by another person."""
        action = {"type": "chat_invite_user", "member_id": int(person)} if added_by else {"type": _BY_LINK}
        self._say(chat, added_by or person, action=action)

    def leave(self, person: str, chat: str, *, removed_by: str = "") -> None:
        """Leave a chat of several people, or be removed by another person."""
        self._say(chat, removed_by or person, action={"type": "chat_kick_user", "member_id": int(person)})

    def _say(self, peer: str, person: str, **content: Any) -> int:
        """Put a message into a dialog or chat; return its number there."""
        message_id, number = self._community.receive(peer)
        message = {
            "id": message_id,
            "date": int(time.time()),
            "peer_id": int(peer),
            "from_id": int(person),
            "text": "",
            "conversation_message_id": number,
            "random_id": 0,
            "out": 0,
            "version": 10000,
            "attachments": [],
            "fwd_messages": [],
            "important": False,
            "is_hidden": False,
            **content,
        }
        actions = ["text", "callback", "open_link"]
        client = {"keyboard": True, "inline_keyboard": True, "button_actions": actions, "lang_id": 0}
        self._events.push("message_new", {"message": message, "client_info": client})
        if peer == person:
            self._newest[peer] = message
        if message["attachments"]:
            self.with_files[peer, number] = message
        return number

    def press(self, person: str, number: int, button: str, chat: str = "") -> str:
        """Press a button below message `number`, or of the keyboard if it is 0. `button`: its label or data. `chat`: of
        several people, in which a member presses; "" for the dialog of the person. Return the id of the press, "" for a
        button that writes a text. Raises LookupError.
        """
        peer = chat or person
        found = self._community.dialogs.button(peer, number, button)
        if found.type == "callback":
            return self._press_callback(person, peer, number, found)
        if found.type == "open_link":
            return ""
        self._community.dialogs.pressed(peer)
        if chat:
            self._say(chat, person, text=found.label, **({"payload": found.payload} if found.payload else {}))
        else:
            self.write(person, found.label, found.payload)
        return ""

    def _press_callback(self, person: str, peer: str, number: int, button: KeyboardButton) -> str:
        press = secrets.token_hex(8)
        self._presses[press] = person, peer
        if len(self._presses) > _MAX_OPEN_PRESSES:
            del self._presses[next(iter(self._presses))]
        content = {"user_id": int(person), "peer_id": int(peer), "event_id": press}
        payload = json.loads(button.payload) if button.payload else {}
        self._events.push("message_event", {**content, "payload": payload, "conversation_message_id": number})
        return press

    def answer(self, person: str, peer: str, press: str, data: str) -> None:
        """Record the community's answer to a press, which only the person sees that has pressed. Raises CallFailed with
        VK's code 100 if there was no such press.
        """
        if self._presses.pop(press, None) != (person, peer):
            raise parameter_error("event_id is invalid")
        text = str(json.loads(data).get("text", "")) if data else ""
        self._answers.setdefault(person, deque(maxlen=_KEPT_ANSWERS)).append({"query": press, "text": text})
        self._state.changed()

    def mark_read(self, peer: str) -> int:
        """Read all messages as a person; return how many events this is."""
        self._state.mark_read("vk", peer)
        newest = self._community.newest_to.get(peer)
        if newest is None:
            return 0
        of_whom = {"from_id": int(peer), "peer_id": int(peer)}
        read = {"read_message_id": newest.id, "conversation_message_id": newest.number}
        self._events.push("message_read", of_whom | read)
        return 1

    def allow(self, peer: str) -> None:
        """Allow messages of the community as a person."""
        self._denied.discard(peer)
        self._events.push("message_allow", {"user_id": int(peer), "key": ""})

    def deny(self, peer: str) -> None:
        """Forbid messages as a person: they are refused with error 901 until the next `allow`."""
        self._denied.add(peer)
        self._events.push("message_deny", {"user_id": int(peer)})

    def has_denied(self, peer: str) -> bool:
        return peer in self._denied

    def shown(self, peer: str, reference: str) -> dict[str, Any] | None:
        """Return what the person sees of a message now, by the message's id; None if it was deleted."""
        message = self._community.dialogs.find(peer, int(reference)) if reference.isdecimal() else None
        if message is None:
            return {}
        return None if message.is_deleted else message.shown()

    def keyboard(self, peer: str) -> list[list[dict[str, str]]]:
        """Return what stands in place of the person's keyboard."""
        keyboard = self._community.dialogs.keyboard(peer)
        rows = keyboard.rows if keyboard else ()
        return [[{"text": one.label, "url": one.link} for one in row] for row in rows]

    def answers(self, person: str) -> list[dict[str, str]]:
        """Return what the community answered to presses of a person, oldest first."""
        return list(self._answers.get(person, ()))
