"""Joining and leaving groups, by a link or through another person, and the updates that the bot receives of it."""

import time
from collections.abc import Iterable
from typing import Any

from sandbox.bot_api.membership.members import PERMISSIONS, member
from sandbox.bot_api.state.bot import Bot
from sandbox.bot_api.state.chats import RIGHTS, Chat, Link, Person
from sandbox.bot_api.state.errors import ApiError

Json = dict[str, Any]


class Joining:
    """Every method raises LookupError for a person, group or link that does not exist or cannot be used."""

    def __init__(self, bot: Bot) -> None:
        self._bot = bot

    def set_up(
        self,
        chat: int,
        *,
        title: str = "",
        username: str = "",
        creator: int = 0,
        administrators: Iterable[int] = (),
        without_rights: Iterable[str] = (),
        topics: bool = False,
    ) -> None:
        """Set up a group: from now on only those who have joined are its members. `without_rights`: rights that the bot
        does not have in it. `topics`: it has topics.
        """
        group = self._group(chat).group
        group.is_set_up = True
        group.title, group.username = title or group.title, username.removeprefix("@") or group.username
        group.withheld_rights = frozenset(without_rights)
        group.topics = (group.topics or {}) if topics else None
        rights = dict.fromkeys(RIGHTS, True)
        for user in administrators:
            group.members[user] = {
                "status": "administrator", "can_be_edited": False, "is_anonymous": False, **rights
            }  # fmt: skip
        if creator:
            group.members[creator] = {"status": "creator", "is_anonymous": False}

    def join(self, user: int, chat: int = 0, *, link: str = "", added_by: int = 0) -> bool:
        """Join a group, by its id or by a link, or be added by another person. Returns False if an administrator must
        approve it first.
        """
        who, group = self._bot.people.get(user), self._bot.chats.with_link(link) if link else self._group(chat)
        if group is None or (link and not group.group.links[link].is_usable):
            raise LookupError("the invite link is not valid")
        if group.group.member(user)["status"] == "kicked":
            raise LookupError(f"{user} was removed from the group {group.id}")
        used = group.group.links[link] if link else None
        if used is not None and used.about["creates_join_request"]:
            self._ask(group, who, used)
            return False
        admit(self._bot, group, who, used, self._bot.people.get(added_by) if added_by else None)
        return True

    def _ask(self, chat: Chat, who: Person, link: Link) -> None:
        """Ask to join. The bot gets chat_join_request."""
        chat.group.requests[who.id] = link
        content = {"chat": chat.about, "from": who.user(), "user_chat_id": who.id, "date": int(time.time())}
        self._bot.updates.add("chat_join_request", {**content, "invite_link": link.about})
        self._bot.state.changed()

    def leave(self, user: int, chat: int) -> None:
        """Leave a group."""
        who, group = self._bot.people.get(user), self._group(chat)
        if not group.group.has(user):
            raise LookupError(f"{user} is not in the group {chat}")
        _change(self._bot, group, who, who, {"status": "left"})
        message = group.add(who.user(), {"left_chat_member": who.user()})
        self._bot.updates.add("message", message)
        self._bot.state.changed()

    def promote(self, user: int, chat: int, *, by: int, rights: Iterable[str] = RIGHTS, title: str = "") -> None:
        """Be made an administrator with these rights by another person; without rights, an ordinary member again."""
        given, named = dict.fromkeys(rights, True), {"custom_title": title} if title else {}
        about = {"can_be_edited": False, "is_anonymous": False, **dict.fromkeys(RIGHTS, False), **given, **named}
        self._set(user, chat, by, {"status": "administrator", **about} if given else {"status": "member"})

    def restrict(self, user: int, chat: int, *, by: int, allowed: Iterable[str] = (), until: int = 0) -> None:
        """Be restricted by another person to what is allowed, for ever or until then (seconds since 1970)."""
        permissions = {**dict.fromkeys(PERMISSIONS, False), **dict.fromkeys(allowed, True)}
        self._set(user, chat, by, {"status": "restricted", "is_member": True, "until_date": until, **permissions})

    def _set(self, user: int, chat: int, by: int, status: Json) -> None:
        group = self._group(chat)
        if not group.group.has(user):
            raise LookupError(f"{user} is not in the group {chat}")
        _change(self._bot, group, self._bot.people.get(user), self._bot.people.get(by), status)
        self._bot.state.changed()

    def groups_of(self, user: int) -> dict[int, str]:
        """Return the groups that a person has joined, with their titles."""
        groups = (chat for chat in self._bot.chats.groups() if user in chat.group.members and chat.group.has(user))
        return {chat.id: str(chat.about["title"]) for chat in groups}

    def _group(self, chat: int) -> Chat:
        try:
            found = self._bot.chats.get(chat)
        except ApiError as error:
            raise LookupError(str(error)) from None
        if found.is_private:
            raise LookupError(f"{chat} is no group")
        return found


def admit(
    bot: Bot,
    chat: Chat,
    who: Person,
    link: Link | None,
    added_by: Person | None = None,
    *,
    via_join_request: bool = False,
) -> None:
    """Make a person a member. The bot gets chat_member, if it asked for it, and the message of the group."""
    about = {"invite_link": link.about} if link is not None else {}
    if link is not None:
        link.joined += 1
    more = {**about, "via_join_request": True} if via_join_request else about
    _change(bot, chat, who, added_by or who, {"status": "member"}, more)
    message = chat.add((added_by or who).user(), {"new_chat_members": [who.user()]})
    bot.updates.add("message", message)
    bot.state.changed()


def _change(bot: Bot, chat: Chat, who: Person, by: Person, new: Json, more: Json | None = None) -> None:
    """Set what a person is in a group."""
    old = member(who, chat)
    chat.group.members[who.id] = new
    content = {"chat": chat.about, "from": by.user(), "date": int(time.time()), "old_chat_member": old}
    bot.updates.add("chat_member", {**content, "new_chat_member": member(who, chat), **(more or {})})
