"""The chats with the bot and their messages: private ones with people, and groups."""

import time
from dataclasses import dataclass, field
from typing import Any

from sandbox.bot_api.state.errors import CHAT_NOT_FOUND, bad_request
from sandbox.bot_api.state.groups import Group
from sandbox.bot_api.state.people import People
from sandbox.telegram.state import identities

KEPT_MESSAGES = 1000  # of one chat
FIRST_SUPERGROUP = -1_000_000_000_000
_LOWEST = -1_997_852_516_352  # core.telegram.org/api/bots/ids

Json = dict[str, Any]


@dataclass(slots=True)
class Chat:
    """One chat. `messages`: objects Message by id, in their current state. `keyboard`: the reply keyboard shown.
    `group`: without a meaning in a private chat.
    """

    id: int
    about: Json  # the object Chat
    messages: dict[int, Json] = field(default_factory=dict)
    last_message_id: int = 0
    keyboard: list[list[Json]] = field(default_factory=list)
    group: Group = field(default_factory=Group)

    @property
    def is_private(self) -> bool:
        return self.id > 0

    def add(self, sender: Json, content: Json) -> Json:
        """Store a new message and return it. At capacity the oldest one is dropped."""
        self.last_message_id += 1
        head = {"message_id": self.last_message_id, "date": int(time.time()), "chat": self.about, "from": sender}
        message = self.messages[self.last_message_id] = {**head, **content}
        if len(self.messages) > KEPT_MESSAGES:
            del self.messages[next(iter(self.messages))]
        return message

    def delete_topic(self, topic: int) -> bool:
        """Delete a topic with its messages; return whether there was one."""
        if not self.group.topics or self.group.topics.pop(topic, None) is None:
            return False
        for number in [one for one, message in self.messages.items() if message.get("message_thread_id") == topic]:
            del self.messages[number]
        return True


class Chats:
    """All chats, created when they are first used."""

    def __init__(self, people: People) -> None:
        self._people = people
        self._all: dict[int, Chat] = {}

    def get(self, chat_id: int) -> Chat:
        """Return the chat. Raises ApiError for an id that no chat can have."""
        if not (identities.exists(chat_id) or _LOWEST <= chat_id < 0):
            raise bad_request(CHAT_NOT_FOUND)
        if chat_id not in self._all:
            self._all[chat_id] = Chat(chat_id, {})
        chat = self._all[chat_id]
        chat.about = self._about(chat)
        return chat

    def named(self, text: str) -> Chat:
        """Return the chat of a parameter chat_id: an id, or the @name of a group that has one. Raises ApiError."""
        if not text:
            raise bad_request("chat_id is empty")
        if text.startswith("@"):
            return self._public(text.removeprefix("@"))
        try:
            return self.get(int(text[:20]))
        except ValueError:
            raise bad_request(CHAT_NOT_FOUND) from None

    def groups(self) -> list[Chat]:
        """Return the groups that were used."""
        return [chat for chat in self._all.values() if not chat.is_private]

    def with_link(self, link: str) -> Chat | None:
        """Return the group with this invite link."""
        return next((self.get(chat.id) for chat in self._all.values() if link in chat.group.links), None)

    def _public(self, name: str) -> Chat:
        for chat in self._all.values():
            if chat.group.username and chat.group.username.lower() == name.lower():
                return self.get(chat.id)
        raise bad_request(CHAT_NOT_FOUND)

    def _about(self, chat: Chat) -> Json:
        if not chat.is_private:
            return _about_group(chat)
        user = self._people.get(chat.id).user()
        about: Json = {"id": chat.id, "type": "private"}
        return about | {name: user[name] for name in ("first_name", "last_name", "username") if name in user}


def _about_group(chat: Chat) -> Json:
    kind = "supergroup" if chat.id < FIRST_SUPERGROUP else "group"
    title = chat.group.title or f"Группа {-chat.id % -FIRST_SUPERGROUP}"
    name = {"username": chat.group.username} if chat.group.username else {}
    forum = {} if chat.group.topics is None else {"is_forum": True}
    return {"id": chat.id, "type": kind, "title": title, **name, **forum}
