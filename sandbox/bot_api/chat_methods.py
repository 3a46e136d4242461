"""The methods about the bot itself, chats and their members."""

from collections.abc import Mapping
from secrets import token_urlsafe
from typing import Any

from sandbox.bot_api.bot import Bot
from sandbox.bot_api.chats import Chat
from sandbox.bot_api.errors import bad_request
from sandbox.bot_api.parameters import Parameters
from sandbox.bot_api.people import Person

Json = dict[str, Any]


def get_me(bot: Bot, parameters: Parameters) -> Json:
    abilities = {"can_join_groups": True, "can_read_all_group_messages": False, "supports_inline_queries": False}
    return {**bot.user(), **abilities}


def get_chat(bot: Bot, parameters: Parameters) -> Json:
    """Return ChatFullInfo."""
    chat = bot.chats.named(parameters.text("chat_id"))
    gifts = dict.fromkeys(("unlimited_gifts", "limited_gifts", "unique_gifts", "premium_subscription"), False)
    return {
        **chat.about,
        "accent_color_id": 0,
        "max_reaction_count": 11,
        "accepted_gift_types": {**gifts, "gifts_from_channels": False},
    }


def send_chat_action(bot: Bot, parameters: Parameters) -> bool:
    bot.chats.named(parameters.text("chat_id"))
    return True


# the bot's commands


def set_my_commands(bot: Bot, parameters: Parameters) -> bool:
    commands = parameters.json("commands")
    if not isinstance(commands, list) or len(commands) > 100:
        raise bad_request("can't parse commands JSON object")
    bot.commands[_scope(parameters)] = commands
    return True


def get_my_commands(bot: Bot, parameters: Parameters) -> list[Any]:
    return bot.commands.get(_scope(parameters), [])


def delete_my_commands(bot: Bot, parameters: Parameters) -> bool:
    bot.commands.pop(_scope(parameters), None)
    return True


def _scope(parameters: Parameters) -> str:
    return f"{parameters.text('scope') or 'default'} {parameters.text('language_code')}"


# members


def get_chat_member(bot: Bot, parameters: Parameters) -> Json:
    """Everyone is a member; the bot is an administrator of groups."""
    chat, user_id = bot.chats.named(parameters.text("chat_id")), parameters.integer("user_id")
    if user_id == bot.id:
        return {"user": bot.user(), "status": "member"} if chat.is_private else _administrator(bot)
    person = _person(bot, user_id)
    return chat.members.get(user_id, {"status": "member"}) | {"user": person.user()}


def _administrator(bot: Bot) -> Json:
    rights = (
        "can_manage_chat", "can_delete_messages", "can_manage_video_chats", "can_restrict_members",
        "can_promote_members", "can_change_info", "can_invite_users", "can_post_stories", "can_edit_stories",
        "can_delete_stories", "can_send_welcome_messages",
    )  # fmt: skip
    status = {"status": "administrator", "can_be_edited": False, "is_anonymous": False}
    return {"user": bot.user(), **status, **dict.fromkeys(rights, True)}


def ban_chat_member(bot: Bot, parameters: Parameters) -> bool:
    return _set_member(bot, parameters, {"status": "kicked", "until_date": parameters.integer("until_date")})


def unban_chat_member(bot: Bot, parameters: Parameters) -> bool:
    return _set_member(bot, parameters, {"status": "left"})


def restrict_chat_member(bot: Bot, parameters: Parameters) -> bool:
    permissions = parameters.json("permissions")
    if not isinstance(permissions, dict):
        raise bad_request("can't parse permissions JSON object")
    allowed = {name: bool(permissions.get(name)) for name in _PERMISSIONS}
    until = {"until_date": parameters.integer("until_date")}
    return _set_member(bot, parameters, {"status": "restricted", "is_member": True, **until, **allowed})


_PERMISSIONS = (
    "can_send_messages", "can_send_audios", "can_send_documents", "can_send_photos", "can_send_videos",
    "can_send_video_notes", "can_send_voice_notes", "can_send_polls", "can_send_other_messages",
    "can_add_web_page_previews", "can_edit_tag", "can_react_to_messages", "can_change_info", "can_invite_users",
    "can_pin_messages", "can_manage_topics",
)  # fmt: skip


def _set_member(bot: Bot, parameters: Parameters, member: Json) -> bool:
    chat = _group(bot, parameters)
    chat.members[_person(bot, parameters.integer("user_id")).id] = member
    return True


def create_chat_invite_link(bot: Bot, parameters: Parameters) -> Json:
    _group(bot, parameters)
    link: Json = {
        "invite_link": f"https://t.me/+{token_urlsafe(12)}",
        "creator": bot.user(),
        "creates_join_request": parameters.flag("creates_join_request"),
        "is_primary": False,
        "is_revoked": False,
    }
    named = {name: parameters.text(name) for name in ("name",) if parameters.text(name)}
    numbers = {name: parameters.integer(name) for name in ("expire_date", "member_limit") if parameters.text(name)}
    return {**link, **named, **numbers}


def _group(bot: Bot, parameters: Parameters) -> Chat:
    chat = bot.chats.named(parameters.text("chat_id"))
    if chat.is_private:
        raise bad_request("method is available only for supergroup and channel chats")
    return chat


def _person(bot: Bot, user_id: int) -> Person:
    try:
        return bot.people.get(user_id)
    except LookupError:
        raise bad_request("user not found") from None


CHAT_METHODS: Mapping[str, Any] = {
    "getMe": get_me,
    "getChat": get_chat,
    "getChatMember": get_chat_member,
    "sendChatAction": send_chat_action,
    "setMyCommands": set_my_commands,
    "getMyCommands": get_my_commands,
    "deleteMyCommands": delete_my_commands,
    "banChatMember": ban_chat_member,
    "unbanChatMember": unban_chat_member,
    "restrictChatMember": restrict_chat_member,
    "createChatInviteLink": create_chat_invite_link,
}
