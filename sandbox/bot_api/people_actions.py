"""Actions of people: write, edit, press a button, ask inline, share a contact, block the bot; what their chat shows."""

import time
from secrets import token_hex
from typing import Any

from sandbox.bot_api.messages.files import KINDS, files_of, is_linked
from sandbox.bot_api.state.bot import Bot
from sandbox.bot_api.state.chats import Chat, Person
from sandbox.bot_api.state.errors import ApiError
from sandbox.bot_api.state.parameters import Upload

Json = dict[str, Any]
MAX_SHOWN_ANSWERS = 20


class PeopleActions:
    """The side of the people. Every method raises LookupError for a person, message or button that does not exist."""

    def __init__(self, bot: Bot) -> None:
        self._bot = bot

    def set_person(self, user: int, *, name: str = "", username: str = "", language: str = "") -> Person:
        """Set the name, username or language of a person."""
        return self._bot.people.set(user, name=name, username=username, language=language)

    def write(self, user: int, text: str, chat: int | None = None, topic: int = 0) -> int:
        """Write to the bot, or in a group and a topic of it; return the message id."""
        content: Json = {"text": text, **(self._in_topic(chat or user, topic) if topic else {})}
        if text.startswith("/"):
            command = text.split(maxsplit=1)[0]
            content["entities"] = [{"type": "bot_command", "offset": 0, "length": len(command)}]
        return self._send(user, content, chat)

    def share_contact(self, user: int, phone: str = "", owner: int = 0) -> int:
        """Share the person's own phone number, as a button with request_contact does, or that of another person; return
        the message id.
        """
        person = self._bot.people.get(owner or user)
        contact = {"phone_number": (phone or person.phone).lstrip("+"), "first_name": person.first_name}
        return self._send(user, {"contact": {**contact, "user_id": person.id}}, None)

    def send_file(
        self, user: int, kind: str, file: Upload, chat: int | None = None, *, reply_to: int = 0, **more: Any
    ) -> int:
        """Send a file as `photo`, `document`, `voice`, …; return the message id. `reply_to`: the id of the message that
        it quotes. `more`: further fields of the message, such as `caption`, `media_group_id` of an album,
        `forward_origin`.
        """
        if reply_to:
            more["reply_to_message"] = self._message(chat or user, reply_to)
        about = {"file_id": self._bot.store_file(file), "file_unique_id": token_hex(8), "file_size": len(file.content)}
        if kind == "photo":
            small = {"file_id": self._bot.store_file(file), "file_unique_id": token_hex(8), "file_size": 1}
            sizes = [{**small, "width": 90, "height": 90}, {**about, "width": 800, "height": 800}]
            return self._send(user, {"photo": sizes, **more}, chat)
        sizes_of = {"width": 320, "height": 240} if kind in ("video", "animation") else {}
        lasting = {"duration": 1} if kind in ("video", "animation", "audio", "voice") else {}
        named = {"file_name": file.name} if file.name and kind != "voice" else {}
        return self._send(
            user, {kind: {**about, **sizes_of, **lasting, **named, "mime_type": file.content_type}, **more}, chat
        )

    def edit(self, user: int, message_id: int, text: str, chat: int | None = None) -> None:
        """Edit the text of an own message."""
        messages = self._chat(chat or user).messages
        message = messages.get(message_id)
        if message is None or message["from"]["id"] != user or "text" not in message:
            raise LookupError(f"{user} has written no text {message_id}")
        kept = {name: value for name, value in message.items() if name != "entities"}
        messages[message_id] = {**kept, "text": text, "edit_date": int(time.time())}
        self._add_update("edited_message", messages[message_id])

    def ask_inline(self, user: int, text: str, offset: str = "") -> str:
        """Write the bot's name and these words in any chat; return the id of the inline query."""
        query = self._bot.new_query(user)
        content = {"id": query.id, "from": self._bot.people.get(user).user(), "query": text, "offset": offset}
        self._add_update("inline_query", content)
        return query.id

    def reply(self, user: int, message_id: int, text: str, chat: int | None = None) -> int:
        original = self._message(chat or user, message_id)
        topic: Json = {name: original[name] for name in ("message_thread_id", "is_topic_message") if name in original}
        return self._send(user, {"text": text, "reply_to_message": original, **topic}, chat)

    def topics(self, chat: int) -> dict[int, str]:
        """Return the names of the topics of a group by their ids."""
        return dict(self._chat(chat).group.topics or {})

    def delete_topic(self, chat: int, topic: int) -> None:
        """Delete a topic of a group with its messages."""
        if not self._chat(chat).delete_topic(topic):
            raise LookupError(f"there is no topic {topic}")
        self._bot.state.changed()

    def _in_topic(self, chat: int, topic: int) -> Json:
        """Return what a message in a topic has: it replies to the one with which the topic began."""
        root = self._chat(chat).messages.get(topic)
        if topic not in (self._chat(chat).group.topics or {}):
            raise LookupError(f"there is no topic {topic}")
        reply = {"reply_to_message": root} if root else {}
        return {"message_thread_id": topic, "is_topic_message": True, **reply}

    def forward(self, user: int, text: str, author: int, chat: int | None = None) -> int:
        """Forward what another person has written; return the message id."""
        origin = {"type": "user", "date": int(time.time()), "sender_user": self._bot.people.get(author).user()}
        return self._send(user, {"text": text, "forward_origin": origin}, chat)

    def _send(self, user: int, content: Json, chat_id: int | None) -> int:
        person = self._bot.people.get(user)
        chat = self._chat(chat_id or user)
        if not (chat.is_private or chat.group.may_write(user)):
            raise LookupError(f"{user} may not write in the group {chat.id}")
        person.has_blocked = False  # who writes to a bot starts it again
        message = chat.add(person.user(), content)
        self._add_update("message", message)
        return int(message["message_id"])

    def press(self, user: int, message_id: int, button: str, chat: int | None = None) -> str:
        """Press the inline button with this callback data or text; return the id of the callback query."""
        message = self._message(chat or user, message_id)
        query = self._bot.new_query(user)
        content = {
            "id": query.id,
            "from": self._bot.people.get(user).user(),
            "message": message,
            "chat_instance": str(chat or user),
            "data": _callback_data(message, button),
        }
        self._add_update("callback_query", content)
        return query.id

    def _message(self, chat: int, message_id: int) -> Json:
        if message_id not in self._chat(chat).messages:
            raise LookupError(f"there is no message {message_id}")
        return self._chat(chat).messages[message_id]

    def _add_update(self, kind: str, content: Json) -> None:
        self._bot.updates.add(kind, content)
        self._bot.state.changed()

    def block(self, user: int) -> None:
        """Block the bot: it gets my_chat_member, and 403 for what it sends from now on."""
        self._set_blocked(user, "member", "kicked")

    def unblock(self, user: int) -> None:
        self._set_blocked(user, "kicked", "member")

    def _set_blocked(self, user: int, old: str, new: str) -> None:
        person, chat = self._bot.people.get(user), self._chat(user)
        person.has_blocked = new == "kicked"
        bot_user = self._bot.user()
        kicked = {"user": bot_user, "status": "kicked", "until_date": 0}
        states = {"kicked": kicked, "member": {"user": bot_user, "status": "member"}}
        content = {"chat": chat.about, "from": person.user(), "date": 0}
        self._add_update("my_chat_member", {**content, "old_chat_member": states[old], "new_chat_member": states[new]})

    # what they see

    def messages(self, chat: int) -> list[Json]:
        """Return the messages of a chat in their current state, oldest first, as objects Message."""
        return list(self._chat(chat).messages.values())

    def keyboard(self, chat: int) -> list[list[str]]:
        """Return the texts of the reply keyboard that is shown; empty if none is."""
        return [[button["text"] for button in row] for row in self._chat(chat).keyboard]

    def answer(self, query: str) -> Json | None:
        """Return what the bot answered to a callback query (text, alert, url) or an inline query (results,
        next_offset, cache_time, is_personal). None if it has not answered.
        """
        return self._bot.queries[query].answer

    def shown(self, chat: int) -> Json:
        """Return what the chat shows, for the inbox page."""
        answers = [
            {"query": query.id, **query.answer}
            for query in self._bot.queries.values()
            if query.user == chat and query.answer is not None and "results" not in query.answer
        ]
        return {
            "messages": [self._shown(message) for message in self.messages(chat)],
            "keyboard": self.keyboard(chat),
            "contact_buttons": [
                one["text"] for row in self._chat(chat).keyboard for one in row if one.get("request_contact")
            ],
            "answers": answers[-MAX_SHOWN_ANSWERS:],
            "blocked": chat > 0 and self._bot.people.get(chat).has_blocked,
        }

    def _shown(self, message: Json) -> Json:
        return {**_shown(message, self._bot.id), "files": [self._file(*one) for one in files_of(message)]}

    def _file(self, kind: str, file_id: str) -> Json:
        upload = self._bot.files.get(file_id)
        linked = upload.content.decode() if upload and is_linked(upload) else ""
        return {"type": kind, "name": upload.name if upload else "", "attachment": file_id, "url": linked}

    def file(self, file_id: str) -> tuple[str, bytes]:
        """Return the name and the content of a file. Raises LookupError."""
        upload = self._bot.files[file_id]
        return upload.name, upload.content

    def _chat(self, chat_id: int) -> Chat:
        try:
            return self._bot.chats.get(chat_id)
        except ApiError as error:
            raise LookupError(str(error)) from None


def _buttons(message: Json) -> list[list[Json]]:
    rows: list[list[Json]] = message.get("reply_markup", {}).get("inline_keyboard", [])
    return rows


def _callback_data(message: Json, wanted: str) -> str:
    """Return the callback data of the button with this data, otherwise with this text. Raises LookupError."""
    buttons = [button for row in _buttons(message) for button in row if "callback_data" in button]
    for name in ("callback_data", "text"):
        for button in buttons:
            if button[name] == wanted:
                return str(button["callback_data"])
    raise LookupError(f"message {message['message_id']} has no button {wanted}")


_NEWS = ("new_chat_members", "left_chat_member")


def _news(message: Json) -> str:
    """Return the names of those who joined or left."""
    users = [
        *message.get("new_chat_members", ()),
        *([message["left_chat_member"]] if "left_chat_member" in message else ()),
    ]
    return ", ".join(user["first_name"] for user in users)


def _shown(message: Json, bot: int) -> Json:
    kinds = [kind for kind in (*KINDS, "contact", *_NEWS) if kind in message]
    text = message.get("text") or message.get("caption") or _news(message)
    author = {} if message["chat"]["type"] == "private" else {"author": message["from"]["first_name"]}
    return {
        **author,
        "id": message["message_id"],
        "from": "bot" if message["from"]["id"] == bot else "person",
        "kind": kinds[0] if kinds else "text",
        "text": text,
        "at": message["date"],
        "edited": "edit_date" in message,
        "buttons": [
            [
                {"text": button["text"], "data": button.get("callback_data", ""), "url": button.get("url", "")}
                for button in row
            ]
            for row in _buttons(message)
        ],
    }
