"""The bot: what its methods and the people who use it share."""

import secrets
from collections import OrderedDict
from typing import Any

from sandbox.max.chats import Chat, Chats
from sandbox.max.content import read_content
from sandbox.max.errors import ApiError, malformed
from sandbox.max.updates import Updates
from sandbox.max.uploads import Uploads
from sandbox.state import SandboxState

CHANNEL = "max"
BOT_ID = 5151
NICK = "id7700000000_bot"
_KEPT_PRESSES = 1000

Json = dict[str, Any]


class Bot:
    """One bot."""

    def __init__(self, state: SandboxState, updates: Updates) -> None:
        self.state = state
        self.updates = updates
        self.chats = Chats(BOT_ID)
        self.uploads = Uploads()
        self.names: dict[int, str] = {}
        self._presses: OrderedDict[str, tuple[int, str]] = OrderedDict()

    def about(self) -> Json:
        """Return the answer of GET /me."""
        return {"user_id": BOT_ID, "first_name": "Sandbox", "username": NICK, "is_bot": True, "name": "Sandbox"}

    def user(self, person: int) -> Json:
        name = self.names.get(person, f"Person {person}")
        return {"user_id": person, "first_name": name, "name": name, "is_bot": False}

    def chat_of(self, query: Json) -> Chat:
        """Return the chat that a call names. Raises ApiError, ValueError."""
        for name, find in (("user_id", self.chats.dialog), ("chat_id", self.chats.of)):
            if name in query:
                return find(int(query[name]))
        raise malformed("user_id or chat_id is needed")

    def address_of(self, query: Json) -> str:
        """Return how the inbox names the chat of a call; "*" if the call names none."""
        try:
            return self.chat_of(query).address
        except (ApiError, ValueError):
            return str(query.get("user_id") or query.get("chat_id") or "*")

    def send(self, chat: Chat, body: Any) -> Json:
        """Send a message. Raises ApiError."""
        content = read_content(body, self.uploads)
        if not content.get("text") and not content.get("attachments"):
            raise malformed("text or attachments: one of them is needed")
        self.chats.check_may_write(chat)
        message = self.chats.add(chat, self.about(), content, self._link(body.get("link")))
        self.state.receive(CHANNEL, chat.address, message["body"]["text"], reference=message["body"]["mid"])
        return message

    def _link(self, given: Any) -> Json | None:
        if given is None:
            return None
        kind, mid = (given.get("type"), given.get("mid")) if isinstance(given, dict) else ("", "")
        if kind not in ("reply", "forward"):
            raise malformed("link: reply or forward")
        _, message = self.chats.find(str(mid))
        return {"type": kind, "sender": message["sender"], "message": message["body"]}

    def edit(self, mid: str, body: Any) -> None:
        """Change an own message; attachments that are not given, or null, stay. Raises ApiError."""
        _, message = self._own(mid)
        message["body"] |= read_content(body, self.uploads)
        message["is_edited"] = True
        self.state.changed()

    def delete(self, mid: str) -> None:
        """Delete a message. Raises ApiError."""
        chat, _ = self._own(mid)
        del chat.messages[mid]
        self.state.changed()

    def _own(self, mid: str) -> tuple[Chat, Json]:
        chat, message = self.chats.find(mid)
        if message["sender"]["user_id"] != BOT_ID:
            raise ApiError(403, "chat.denied", "Not a message of the bot")
        self.chats.check_may_write(chat)
        return chat, message

    def press(self, person: int, mid: str) -> str:
        """Remember a press; return its id."""
        press = secrets.token_urlsafe(24)
        self._presses[press] = person, mid
        if len(self._presses) > _KEPT_PRESSES:
            self._presses.popitem(last=False)
        return press

    def answer(self, press: str, body: Any) -> None:
        """Answer a press with a new content of its message. Raises ApiError, also for an empty answer."""
        if not isinstance(body, dict) or not body.get("message"):
            raise malformed("message: it is needed")
        if press not in self._presses:
            raise ApiError(404, "callback.not.found", "Callback not found")
        _, mid = self._presses.pop(press)
        self.edit(mid, body["message"])
