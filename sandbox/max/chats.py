"""The chats of the bot: dialogs with people, and groups; their messages in their current state.

A dialog has a chat id of its own, which is not the id of the person (observed: person XOR bot). Groups are negative.
"""

import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sandbox.max.errors import ApiError, suspended

Json = dict[str, Any]
_KEPT = 200_000


@dataclass(slots=True)
class Chat:
    """`person`: whose dialog it is, 0 for a group. `is_stopped`: the person has stopped the bot."""

    id: int
    person: int = 0
    title: str = ""
    is_stopped: bool = False
    members: set[int] = field(default_factory=set)
    messages: dict[str, Json] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """Return how a message names the chat: the id of the person, or of the group."""
        return str(self.person or self.id)


class Chats:
    """Of one bot. Any person and any group exists."""

    def __init__(self, bot: int) -> None:
        self._bot = bot
        self._chats: dict[int, Chat] = {}
        self._order: OrderedDict[str, Chat] = OrderedDict()
        self._last = 0

    def dialog(self, person: int) -> Chat:
        """Return the dialog with a person. The id is that of MAX as it was observed; it may change."""
        return self._chats.setdefault(person ^ self._bot, Chat(person ^ self._bot, person))

    def group(self, chat_id: int) -> Chat:
        return self._chats.setdefault(chat_id, Chat(chat_id, title=f"Группа {-chat_id}"))

    def of(self, chat_id: int) -> Chat:
        """Return the chat with an id. Raises ApiError for a dialog that was never begun, and for the id of a person."""
        if chat_id < 0:
            return self.group(chat_id)
        if chat_id not in self._chats:
            raise ApiError(404, "chat.not.found", f"Chat {chat_id} not found")
        return self._chats[chat_id]

    def groups_of(self, person: int) -> Sequence[Chat]:
        return [one for one in self._chats.values() if not one.person and person in one.members]

    def add(self, chat: Chat, sender: Json, content: Json, link: Json | None = None) -> Json:
        """Store a message and return it."""
        now = time.time_ns() // 1_000_000
        self._last = max(self._last + 1, now << 16)
        mid = f"mid.{chat.id & (2**64 - 1):016x}{self._last:016x}"
        kind = "dialog" if chat.person else "chat"
        # In a dialog `user_id` is the receiver: of what a person writes it is the bot.
        receiver = (chat.person if sender.get("is_bot") else self._bot) if chat.person else None
        body = {"mid": mid, "seq": self._last, "text": "", "attachments": [], "markup": [], **content}
        recipient = {"chat_id": chat.id, "chat_type": kind, "user_id": receiver}
        message: Json = {"recipient": recipient, "timestamp": now, "sender": sender, "body": body}
        if link is not None:
            message["link"] = link
        chat.messages[mid] = message
        self._order[mid] = chat
        if len(self._order) > _KEPT:
            old, owner = self._order.popitem(last=False)
            owner.messages.pop(old, None)
        return message

    def find(self, mid: str) -> tuple[Chat, Json]:
        """Return a message. Raises ApiError if there is no such message."""
        chat = self._order.get(mid)
        if chat is None or mid not in chat.messages:
            raise ApiError(404, "message.not.found", f"Message {mid} not found")
        return chat, chat.messages[mid]

    def named(self, mids: Sequence[str]) -> list[Json]:
        """Return the messages with these ids, without those that do not exist."""
        chats = {mid: self._order[mid] for mid in mids if mid in self._order}
        return [chat.messages[mid] for mid, chat in chats.items() if mid in chat.messages]

    def check_may_write(self, chat: Chat) -> None:
        """Check that the bot may write to a person. Raises ApiError if the person has stopped the bot."""
        if chat.is_stopped:
            raise suspended(chat.address)

    def newest(self, chat: Chat, since: int, until: int, count: int) -> list[Json]:
        """Return the messages of a time, in milliseconds, newest first."""
        found = [one for one in reversed(chat.messages.values()) if since <= one["timestamp"] <= until]
        return found[:count]
