"""A group: its members, the rights of the bot in it, its invite links and the people who ask to join.

Every group exists. Until it is set up, every person is a member of it; afterwards only those who have joined. The bot
is an administrator with all rights, except those that were taken from it.
"""

import time
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]

RIGHTS = (
    "can_manage_chat", "can_delete_messages", "can_manage_video_chats", "can_restrict_members",
    "can_promote_members", "can_change_info", "can_invite_users", "can_post_stories", "can_edit_stories",
    "can_delete_stories", "can_send_welcome_messages", "can_manage_topics",
)  # fmt: skip
ADMINISTRATORS = ("creator", "administrator")
_OUTSIDE = ("left", "kicked")
_SHORTEST, _LONGEST = 30, 366 * 86_400  # seconds; another restriction is for ever


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
