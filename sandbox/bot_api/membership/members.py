"""The methods about the members of groups: who they are, and restricting and removing them."""

from collections.abc import Mapping
from typing import Any

from sandbox.bot_api.state.bot import Bot
from sandbox.bot_api.state.chats import ADMINISTRATORS, RIGHTS, Chat, Person, until
from sandbox.bot_api.state.errors import bad_request
from sandbox.bot_api.state.parameters import Parameters

Json = dict[str, Any]

PERMISSIONS = (
    "can_send_messages", "can_send_audios", "can_send_documents", "can_send_photos", "can_send_videos",
    "can_send_video_notes", "can_send_voice_notes", "can_send_polls", "can_send_other_messages",
    "can_add_web_page_previews", "can_edit_tag", "can_react_to_messages", "can_change_info", "can_invite_users",
    "can_pin_messages", "can_manage_topics",
)  # fmt: skip


def get_chat_member(bot: Bot, parameters: Parameters) -> Json:
    chat, user_id = bot.chats.named(parameters.text("chat_id")), parameters.integer("user_id")
    if user_id == bot.id:
        return {"user": bot.user(), "status": "member"} if chat.is_private else bot_member(bot, chat)
    return member(person(bot, user_id), chat)


def member(who: Person, chat: Chat) -> Json:
    """Return the object ChatMember of a person."""
    return {**({"status": "member"} if chat.is_private else chat.group.member(who.id)), "user": who.user()}


def bot_member(bot: Bot, chat: Chat) -> Json:
    """Return the object ChatMember of the bot in a group."""
    status = {"status": "administrator", "can_be_edited": False, "is_anonymous": False}
    return {"user": bot.user(), **status, **{right: right not in chat.group.withheld_rights for right in RIGHTS}}


def get_chat_administrators(bot: Bot, parameters: Parameters) -> list[Json]:
    chat = bot.chats.named(parameters.text("chat_id"))
    if chat.is_private:
        raise bad_request("there are no administrators in the private chat")
    people = [bot.people.get(user) for user, one in chat.group.members.items() if one["status"] in ADMINISTRATORS]
    return [*(member(one, chat) for one in people), bot_member(bot, chat)]


def ban_chat_member(bot: Bot, parameters: Parameters) -> bool:
    chat, who = _weaker_member(bot, parameters)
    chat.group.members[who.id] = {"status": "kicked", "until_date": until(parameters.integer("until_date"))}
    return True


def unban_chat_member(bot: Bot, parameters: Parameters) -> bool:
    """Admit a person again; without only_if_banned a member is removed, as in Telegram."""
    chat, who = _weaker_member(bot, parameters)
    if chat.group.member(who.id)["status"] == "kicked" or not parameters.flag("only_if_banned"):
        chat.group.members[who.id] = {"status": "left"}
    return True


def restrict_chat_member(bot: Bot, parameters: Parameters) -> bool:
    permissions = parameters.json("permissions")
    if not isinstance(permissions, dict):
        raise bad_request("can't parse permissions JSON object")
    chat, who = _weaker_member(bot, parameters)
    if chat.about["type"] != "supergroup":
        raise bad_request("method is available only for supergroups")
    allowed = {name: bool(permissions.get(name)) for name in PERMISSIONS}
    if all(allowed.values()):
        chat.group.members[who.id] = {"status": "member"}
        return True
    about = {"status": "restricted", "is_member": chat.group.has(who.id)}
    chat.group.members[who.id] = {**about, "until_date": until(parameters.integer("until_date")), **allowed}
    return True


def group(bot: Bot, parameters: Parameters) -> Chat:
    """Return the group of chat_id. Raises ApiError, also for a private chat."""
    chat = bot.chats.named(parameters.text("chat_id"))
    if chat.is_private:
        raise bad_request("method is available only for supergroup and channel chats")
    return chat


def person(bot: Bot, user_id: int) -> Person:
    """Return the person. Raises ApiError."""
    try:
        return bot.people.get(user_id)
    except LookupError:
        raise bad_request("user not found") from None


def _weaker_member(bot: Bot, parameters: Parameters) -> tuple[Chat, Person]:
    """Return a group and a person that the bot may restrict there. Raises ApiError."""
    chat, user_id = group(bot, parameters), parameters.integer("user_id")
    if user_id == bot.id:
        raise bad_request("can't restrict self")
    who = person(bot, user_id)
    if "can_restrict_members" in chat.group.withheld_rights:
        raise bad_request("not enough rights to restrict/unrestrict chat member")
    if chat.group.member(who.id)["status"] == "creator":
        raise bad_request("can't remove chat owner")
    if chat.group.member(who.id)["status"] == "administrator":
        raise bad_request("user is an administrator of the chat")
    return chat, who


MEMBERS: Mapping[str, Any] = {
    "getChatMember": get_chat_member,
    "getChatAdministrators": get_chat_administrators,
    "banChatMember": ban_chat_member,
    "unbanChatMember": unban_chat_member,
    "restrictChatMember": restrict_chat_member,
}
