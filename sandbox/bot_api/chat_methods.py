"""The methods about the bot itself and its chats."""

from collections.abc import Mapping
from typing import Any

from sandbox.bot_api.state.bot import Bot
from sandbox.bot_api.state.parameters import Parameters

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


CHAT_METHODS: Mapping[str, Any] = {
    "getMe": get_me,
    "getChat": get_chat,
    "sendChatAction": send_chat_action,
}
