"""The methods about invite links and the people who ask to join by them."""

from collections.abc import Mapping
from secrets import token_urlsafe
from typing import Any

from sandbox.bot_api.membership import joining
from sandbox.bot_api.membership.members import group, person
from sandbox.bot_api.state.bot import Bot
from sandbox.bot_api.state.chats import Chat, Link
from sandbox.bot_api.state.errors import bad_request
from sandbox.bot_api.state.parameters import Parameters

MAX_NAME = 32
MAX_MEMBERS = 99_999

Json = dict[str, Any]


def create_chat_invite_link(bot: Bot, parameters: Parameters) -> Json:
    chat = _managed_group(bot, parameters)
    return _new_link(bot, chat, {"is_primary": False, **_options(parameters)})


def export_chat_invite_link(bot: Bot, parameters: Parameters) -> str:
    """Replace the primary link and return the new one."""
    chat = _managed_group(bot, parameters)
    for link in chat.group.links.values():
        link.about["is_revoked"] = link.about["is_revoked"] or link.about["is_primary"]
    return str(_new_link(bot, chat, {"is_primary": True, "creates_join_request": False})["invite_link"])


def revoke_chat_invite_link(bot: Bot, parameters: Parameters) -> Json:
    chat = _managed_group(bot, parameters)
    link = chat.group.links.get(parameters.text("invite_link"))
    if link is None:
        raise bad_request("INVITE_HASH_EXPIRED")
    link.about["is_revoked"] = True
    return link.about


def _managed_group(bot: Bot, parameters: Parameters) -> Chat:
    chat = group(bot, parameters)
    if "can_invite_users" in chat.group.withheld_rights:
        raise bad_request("not enough rights to manage chat invite link")
    return chat


def _options(parameters: Parameters) -> Json:
    """Return the fields that the caller chooses. Raises ApiError."""
    needs_approval, limit = parameters.flag("creates_join_request"), parameters.integer("member_limit")
    if needs_approval and limit:
        raise bad_request("member limit can't be specified for links requiring administrator approval")
    if not 0 <= limit <= MAX_MEMBERS:
        raise bad_request("invalid member limit specified")
    numbers = {name: parameters.integer(name) for name in ("expire_date", "member_limit") if parameters.integer(name)}
    name = {"name": parameters.text("name")[:MAX_NAME]} if parameters.text("name") else {}
    return {"creates_join_request": needs_approval, **name, **numbers}


def _new_link(bot: Bot, chat: Chat, about: Json) -> Json:
    address = f"https://t.me/+{token_urlsafe(12)}"
    link = Link({"invite_link": address, "creator": bot.user(), "is_revoked": False, **about})
    chat.group.links[address] = link
    return link.about


def approve_chat_join_request(bot: Bot, parameters: Parameters) -> bool:
    chat = _managed_group(bot, parameters)
    who = person(bot, parameters.integer("user_id"))
    link = _taken_request(chat, who.id)
    joining.admit(bot, chat, who, link, via_join_request=True)
    return True


def decline_chat_join_request(bot: Bot, parameters: Parameters) -> bool:
    chat = _managed_group(bot, parameters)
    _taken_request(chat, person(bot, parameters.integer("user_id")).id)
    return True


def _taken_request(chat: Chat, user: int) -> Link:
    """Remove the person's request to join and return its link. Raises ApiError."""
    link = chat.group.requests.pop(user, None)
    if link is None:
        raise bad_request("USER_ALREADY_PARTICIPANT" if chat.group.has(user) else "HIDE_REQUESTER_MISSING")
    return link


INVITE_LINKS: Mapping[str, Any] = {
    "createChatInviteLink": create_chat_invite_link,
    "exportChatInviteLink": export_chat_invite_link,
    "revokeChatInviteLink": revoke_chat_invite_link,
    "approveChatJoinRequest": approve_chat_join_request,
    "declineChatJoinRequest": decline_chat_join_request,
}
