"""The methods about the bot itself and its chats."""

from collections.abc import Mapping
from typing import Any

from sandbox.bot_api.state.bot import Bot
from sandbox.bot_api.state.errors import bad_request
from sandbox.bot_api.state.parameters import Parameters

_LONGEST_TOPIC = 128

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


def create_forum_topic(bot: Bot, parameters: Parameters) -> Json:
    """Begin a topic of a group, whose id is that of the message with which it begins. Raises ApiError."""
    chat, name = bot.chats.named(parameters.text("chat_id")), parameters.text("name").strip()
    if chat.group.topics is None:
        raise bad_request("the chat is not a forum")
    if "can_manage_topics" in chat.group.withheld_rights:
        raise bad_request("not enough rights to create a topic")
    if not 0 < len(name) <= _LONGEST_TOPIC:
        raise bad_request("TOPIC_TITLE_EMPTY" if not name else "topic name is too long")
    about = {"name": name, "icon_color": 7322096}
    topic = int(chat.add(bot.user(), {"forum_topic_created": about, "is_topic_message": True})["message_id"])
    chat.messages[topic]["message_thread_id"] = topic
    chat.group.topics[topic] = name
    return {"message_thread_id": topic, **about}


def delete_forum_topic(bot: Bot, parameters: Parameters) -> bool:
    """Delete a topic with its messages. Raises ApiError."""
    chat, topic = bot.chats.named(parameters.text("chat_id")), parameters.integer("message_thread_id")
    if not chat.delete_topic(topic):
        raise bad_request("message thread not found")
    return True


CHAT_METHODS: Mapping[str, Any] = {
    "getMe": get_me,
    "getChat": get_chat,
    "sendChatAction": send_chat_action,
    "createForumTopic": create_forum_topic,
    "deleteForumTopic": delete_forum_topic,
}
