"""The fields of events: what scenarios may name in placeholders, and those that follow from others. Pure."""

from collections.abc import Mapping

from core.model.content import ParseMode
from core.model.text.text_entities import escaped
from core.sentence import language_of
from scenarios.bot.button_data import value_of
from scenarios.bot.data import Data

Event = Mapping[str, Data]

_TEXTS = {"event_text_html": ParseMode.HTML, "event_text_markdown": ParseMode.MARKDOWN_V2}

MARKED_UP = {**_TEXTS, "response_text_html": ParseMode.HTML, "response_text_md2": ParseMode.MARKDOWN_V2}
"""The fields of events, and the results of actions, that are ready for a text of this parse mode: words of people and
models are escaped in them already.
"""

FIELDS: Mapping[str, str] = {
    "channel": "the channel of the answer",
    "kind": "`text`, `callback`, `new_member`, `left_member`, `changed_member`, `join_request`, `edited`,"
    " `inline_query`, `answer` or `reply`",
    "id": "what a repeat has in common with the first",
    "user_id": "the person; of those who join together the first one",
    "username": "its @name, without @",
    "first_name": "",
    "last_name": "",
    "language_code": "for example `ru`",
    "language": "`ru` or `en`: that of the person in the directory, else of its account, else of the bot",
    "is_bot": "whether a bot has done it",
    "user_state": "only in a dry run: the person's state",
    "entity_id": "who has written: the person, or the chat or channel in whose name; of a join the group",
    "entity_type": "`user`, `chat` or `channel`",
    "chat_id": "the chat",
    "dialog_id": "in MAX the dialog of the bot with the person, whose id is not that of the person",
    "chat_type": "`private`, `group`, `supergroup` or `channel`",
    "chat_title": "the title of a group",
    "chat_username": "the @name of a group, without @",
    "topic_id": "the topic of a group in which it was written",
    "message_id": "the message; of a pressed button the message with it",
    "event_text": "the text or caption; of an inline query the words after the bot's name; of an answer what was"
    " answered",
    "event_text_html": "the same with its marks, for texts in HTML",
    "event_text_markdown": "the same with its marks, for texts with `parse_mode: MarkdownV2`",
    "event_date": "when it happened, ISO 8601 with a zone",
    "edit_date": "when the message was edited",
    "media_group_id": "what the photos of an album have in common",
    "attachments": "files: `type`, `file_id`, `mime_type`, `file_name`; of a photo only the largest size; of a contact"
    " `phone`, and `is_own` if it is that of the sender",
    "callback_id": "the press of a button",
    "button_value": "what stands behind `?` in the goal of the pressed button: 12 of `{Take it: take?12}`",
    "callback_data": "the text of the button in small Latin letters, digits, `_` and `-` (`Да: 1` is `da_1`), or its"
    " goal",
    "is_reply": "whether the message replies to another one",
    "reply_message_id": "the message to which it replies",
    "reply_message_text": "its text or caption",
    "reply_date": "when it was written",
    "reply_attachments": "its files",
    "reply_user_id": "its author",
    "reply_is_bot": "whether a bot wrote it",
    "reply_username": "",
    "reply_first_name": "",
    "reply_last_name": "",
    "reply_entity_id": "as `entity_id`, of the message to which it replies",
    "reply_entity_type": "",
    "is_forward": "whether the message was forwarded",
    "forward_text": "the words that were forwarded, in VK and MAX, which have them beside `event_text`",
    "forward_files": "how many files were forwarded there",
    "forward_entity_id": "who wrote it first: a person, chat or channel; missing if the person hides that",
    "forward_entity_type": "`user`, `chat` or `channel`",
    "forward_date": "when it was written",
    "forward_message_id": "its number in a channel",
    "forward_from_user_username": "",
    "forward_from_user_first_name": "also of a person that hides its account",
    "forward_from_user_last_name": "",
    "forward_from_chat_title": "",
    "forward_from_chat_type": "",
    "forward_from_chat_username": "",
    "joined_user_ids": "all who joined together, as a list",
    "joined_usernames": "",
    "joined_first_names": "",
    "joined_last_names": "",
    "joined_is_bots": "",
    "joined_user_id": "the first one who joined",
    "joined_username": "",
    "joined_first_name": "",
    "joined_last_name": "",
    "joined_is_bot": "",
    "initiator_user_id": "who added, removed or promoted the person; a person who came by a link or left is its own"
    " initiator",
    "initiator_username": "",
    "initiator_first_name": "",
    "initiator_last_name": "",
    "initiator_language_code": "",
    "member_status": "what the person is in the group now: `creator`, `administrator`, `member` or `restricted`",
    "member_status_before": "what it was before; the same if only its rights have changed",
    "member_rights": "what an administrator or a restricted person may do now, as a list: `can_invite_users`, …",
    "member_title": "the title of an administrator",
    "member_until": "when a restriction ends, ISO 8601 with a zone; missing if it does not end",
    "invite_link": "the link by which a person came or asks to come, if the bot administers the group",
    "invite_link_creates_join_request": "whether an administrator approves who comes by it",
    "invite_link_creator_id": "who made the link",
    "invite_link_creator_username": "",
    "invite_link_creator_first_name": "",
    "bio": "the description in the profile of the person who asks to join",
    "inline_query_id": "the inline query, for `answer_inline`",
    "inline_query_offset": "where the next page of its results begins",
    "answer_value": "of an answer to the question of a delivery: the number of the option, the number, the date, or the"
    " id of the file",
    "answer_state": "`answered` or `late`",
    "answer_by": "`press`, `number`, `text`, `mail`, `link` or `on_behalf`",
    "delivery_id": "the delivery that was answered, or replied to",
    "delivery_text": "its text",
    "thread_id": "of a reply: the thread to which it was added",
    "thread_inbox": "who reads it: `user:` and the id of a person, or `office:` and that of a group",
    "schedule": "the entry of schedule.yaml that has started the run",
    "directory_id": "the id of the person in the directory, if the directory knows it",
    "directory_role": "its role there: `student`, `trainer`, `staff` or `admin`",
    "directory_name": "its name there",
    "directory_fields": "its own fields there: `{directory_fields.course}`; a number as such, a date as 2026-09-01",
    "due": "when it was due, ISO 8601 with a zone",
    "source": "the bot, gateway or client in which `id` is unique",
    "origin": "`api`: the event came from `POST /v1/updates`",
    "key_scopes": "the scopes of the key with which it came",
}
"""Name → meaning; "" where the name is enough."""

OF_ADA = (
    *("user_state", "event_text_html", "event_text_markdown", "forward_text", "forward_files", "button_value"),
    *(
        "language",
        "schedule",
        "directory_id",
        "directory_role",
        "directory_name",
        "directory_fields",
        "due",
        "source",
        "origin",
        "key_scopes",
    ),
)
"""The fields that no client sets: Ada derives the texts with marks from `event_text`, and sets the others."""


def with_derived(event: Event, language: str) -> dict[str, Data]:
    """Return the event with the fields that follow from the others, as far as it has none of its own. `language`: that
    of the bot, for people of whom none is known.
    """
    text = event.get("event_text")
    marked_up = {} if text is None else {name: escaped(str(text), mode) for name, mode in _TEXTS.items()}
    return {
        **marked_up,
        "is_reply": event.get("reply_message_id") is not None,
        "is_forward": False,
        **_entity(event),
        **_button_value(event),
        "language": language_of(str(event.get("language_code") or ""), language),
        **_person("reply_", event.get("reply_user_id")),
        **event,
    }


def _button_value(event: Event) -> dict[str, Data]:
    data = event.get("callback_data")
    return {} if data is None else {"button_value": value_of(str(data))}


def _entity(event: Event) -> dict[str, Data]:
    if event.get("kind") == "new_member":
        kind = "channel" if event.get("chat_type") == "channel" else "chat"
        return {"entity_id": event.get("chat_id"), "entity_type": kind}
    return _person("", event.get("user_id"))


def _person(prefix: str, person: Data) -> dict[str, Data]:
    return {} if person is None else {f"{prefix}entity_id": person, f"{prefix}entity_type": "user"}
