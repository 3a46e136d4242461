"""The chats with the bot and their messages: private ones with people, and groups.

Every positive id is a person; what was not set is computed as in `sandbox.telegram`. Every group exists. Until it is
set up, every person is a member of it; afterwards only those who have joined. The bot is an administrator with all
rights, except those that were taken from it.
"""

import time
from dataclasses import dataclass, field
from typing import Any

from sandbox.bot_api.state.errors import CHAT_NOT_FOUND, bad_request
from sandbox.telegram.state import identities

Json = dict[str, Any]

RIGHTS = (
    "can_manage_chat", "can_delete_messages", "can_manage_video_chats", "can_restrict_members",
    "can_promote_members", "can_change_info", "can_invite_users", "can_post_stories", "can_edit_stories",
    "can_delete_stories", "can_send_welcome_messages", "can_manage_topics",
)  # fmt: skip
ADMINISTRATORS = ("creator", "administrator")
_OUTSIDE = ("left", "kicked")
_SHORTEST, _LONGEST = 30, 366 * 86_400  # seconds; another restriction is for ever

KEPT_MESSAGES = 1000  # of one chat
FIRST_SUPERGROUP = -1_000_000_000_000
_LOWEST = -1_997_852_516_352  # core.telegram.org/api/bots/ids


@dataclass(slots=True)
class Link:
    """An invite link. `about`: the object ChatInviteLink. `joined`: how many people used it."""

    about: Json
    joined: int = 0

    @property
    def is_usable(self) -> bool:
        """Return whether a person may still use it."""
        expires, limit = self.about.get("expire_date", 0), self.about.get("member_limit", 0)
        is_over = (expires and expires <= time.time()) or (limit and self.joined >= limit)
        return not (self.about["is_revoked"] or is_over)


@dataclass(slots=True)
class Group:
    """A group without its messages. `members`: user id → ChatMember without its user. `requests`: user id →
    the link by which the person asks to join. `topics`: id → name, None for a group without topics.
    """

    is_set_up: bool = False
    title: str = ""
    username: str = ""
    withheld_rights: frozenset[str] = frozenset()
    members: dict[int, Json] = field(default_factory=dict)
    links: dict[str, Link] = field(default_factory=dict)
    requests: dict[int, Link] = field(default_factory=dict)
    topics: dict[int, str] | None = None

    def member(self, user: int) -> Json:
        """Return the ChatMember of a person, without the user. A restriction that is over is none."""
        member = self.members.get(user) or {"status": "left" if self.is_set_up else "member"}
        until = member.get("until_date", 0)
        if until and until <= time.time():
            return {"status": "member" if member["status"] == "restricted" else "left"}
        return member

    def has(self, user: int) -> bool:
        """Return whether the person is in the group."""
        return self.member(user)["status"] not in _OUTSIDE

    def may_write(self, user: int) -> bool:
        return self.has(user) and bool(self.member(user).get("can_send_messages", True))


def until(seconds_since_1970: int) -> int:
    """Return the end of a restriction as Telegram stores it: 0 is never."""
    return seconds_since_1970 if _SHORTEST <= seconds_since_1970 - time.time() <= _LONGEST else 0


@dataclass(slots=True)
class Person:
    """One person. `has_blocked`: the person has blocked the bot."""

    id: int
    first_name: str
    last_name: str
    username: str
    language: str = "ru"
    has_blocked: bool = False

    @property
    def phone(self) -> str:
        """Return the person's phone in E.164."""
        return f"+{identities.phone_of(self.id)}"

    def user(self) -> dict[str, Any]:
        """Return the object User."""
        names = {"first_name": self.first_name, "last_name": self.last_name, "username": self.username}
        return {
            "id": self.id,
            "is_bot": False,
            **{name: value for name, value in names.items() if value},
            "language_code": self.language,
        }


class People:
    """All people, created when they are first used."""

    def __init__(self) -> None:
        self._all: dict[int, Person] = {}

    def get(self, user_id: int) -> Person:
        """Return the person. Raises LookupError for an id that no person can have."""
        if not identities.exists(user_id):
            raise LookupError(f"no person has the id {user_id}")
        if user_id not in self._all:
            first, last = identities.name_of(user_id)
            self._all[user_id] = Person(user_id, first, last, identities.username_of(user_id))
        return self._all[user_id]

    def set(self, user_id: int, *, name: str = "", username: str = "", language: str = "") -> Person:
        """Set what is given. Raises LookupError for an id that no person can have."""
        person = self.get(user_id)
        if name:
            person.first_name, _, person.last_name = name.partition(" ")
        person.username = username or person.username
        person.language = language or person.language
        return person


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
