"""Actions of people in MAX: start and stop the bot, write, press buttons, share a contact. Each becomes an update."""

import time
from typing import Any

from sandbox.max.bot import BOT_ID, CHANNEL, Bot
from sandbox.max.chats import Chat
from sandbox.max.content import rows_of
from sandbox.max.errors import ApiError
from sandbox.max.uploads import UploadedFile

Json = dict[str, Any]


class PeopleActions:
    """The side of the people. Raises LookupError for a message or button that does not exist."""

    def __init__(self, bot: Bot) -> None:
        self._bot = bot

    def start(self, person: int, payload: str = "", name: str = "") -> None:
        """Press Start, perhaps of a deep link."""
        chat = self._begin(person, name)
        self._add("bot_started", chat, person, {"payload": payload or None, "user_locale": "ru"})

    def stop(self, person: int) -> None:
        """Stop the bot: it may not write any more."""
        chat = self._bot.chats.dialog(person)
        chat.is_stopped = True
        self._add("bot_stopped", chat, person, {"user_locale": "ru"})
        self._add("dialog_removed", chat, person, {"user_locale": "ru"})

    def write(self, person: int, text: str, chat: int = 0, *, name: str = "", reply_to: str = "") -> str:
        """Write to the bot, or in a group; return the mid."""
        return self._send(person, {"text": text}, chat, name, self._quoted(reply_to))

    def _quoted(self, mid: str) -> Json | None:
        if not mid:
            return None
        _, message = self._find(mid)
        return {"type": "reply", "sender": message["sender"], "message": message["body"]}

    def send_file(
        self, person: int, file: UploadedFile, text: str = "", chat: int = 0, *, name: str = "", reply_to: str = ""
    ) -> str:
        self._bot.uploads.store(file)
        payload = {"token": file.token, "url": self._bot.uploads.url.replace("/upload/", "/files/") + file.token}
        about = {"photo_id": 1} if file.type == "image" else {}
        attachment = {"type": file.type, "payload": {**payload, **about}, **file.about()}
        return self._send(person, {"text": text, "attachments": [attachment]}, chat, name, self._quoted(reply_to))

    def share_contact(self, person: int, phone: str) -> str:
        """Press a button that asks for the contact; return the mid."""
        card = f"BEGIN:VCARD\r\nVERSION:3.0\r\nTEL;TYPE=cell:{phone.lstrip('+')}\r\nFN:Person\r\nEND:VCARD\r\n"
        payload = {"vcf_info": card, "max_info": self._bot.user(person)}
        return self._send(person, {"text": "", "attachments": [{"type": "contact", "payload": payload}]}, 0)

    def edit(self, person: int, mid: str, text: str) -> None:
        _, message = self._find(mid)
        if message["sender"]["user_id"] != person:
            raise LookupError(f"{mid} is not of {person}")
        message["body"]["text"] = text
        self._bot.updates.add("message_edited", {"message": message})
        self._bot.state.changed()

    def press(self, person: int, mid: str, button: str) -> str:
        """Press the button with this payload or text; return the id of the press, or the mid of what it wrote."""
        chat, message = self._find(mid)
        found = next(
            (one for row in rows_of(message) for one in row if button in (one.get("payload"), one["text"])), None
        )
        if found is None:
            raise LookupError(f"message {mid} has no button {button}")
        if found["type"] == "message":
            return self._send(person, {"text": found["text"]}, 0 if chat.person else chat.id)
        if found["type"] == "request_contact":
            return self.share_contact(person, f"+7999{person % 10**7:07}")
        if found["type"] != "callback":
            return ""
        press = self._bot.press(person, mid)
        now = time.time_ns() // 1_000_000
        callback = {"timestamp": now, "callback_id": press, "payload": found["payload"], "user": self._bot.user(person)}
        self._bot.updates.add("message_callback", {"callback": callback, "message": message, "user_locale": "ru"})
        return press

    def join(self, person: int, chat: int, inviter: int = 0) -> None:
        """Join a group that has the bot."""
        group = self._bot.chats.group(chat)
        group.members.add(person)
        self._add("user_added", group, person, {"inviter_id": inviter or None, "is_channel": False})

    def leave(self, person: int, chat: int) -> None:
        group = self._bot.chats.group(chat)
        group.members.discard(person)
        self._add("user_removed", group, person, {"admin_id": None, "is_channel": False})

    def _begin(self, person: int, name: str) -> Chat:
        """Return the dialog of a person. A person that writes to a bot, or starts it, can be written to again."""
        if name:
            self._bot.names[person] = name
        chat = self._bot.chats.dialog(person)
        chat.is_stopped = False
        return chat

    def _send(self, person: int, content: Json, chat_id: int, name: str = "", link: Json | None = None) -> str:
        chat = self._begin(person, name)
        if chat_id:
            chat = self._bot.chats.group(chat_id)
            chat.members.add(person)
        message = self._bot.chats.add(chat, self._bot.user(person), content, link)
        self._bot.updates.add("message_created", {"message": message, "user_locale": "ru"})
        self._bot.state.count(CHANNEL, "written")
        self._bot.state.changed()
        return str(message["body"]["mid"])

    def _add(self, kind: str, chat: Chat, person: int, more: Json) -> None:
        self._bot.updates.add(kind, {"chat_id": chat.id, "user": self._bot.user(person), **more})
        self._bot.state.changed()

    def _find(self, mid: str) -> tuple[Chat, Json]:
        try:
            return self._bot.chats.find(mid)
        except ApiError as error:
            raise LookupError(str(error)) from None

    # what they see

    def groups_of(self, person: int) -> dict[int, str]:
        """Return the titles of the groups in which a person has written or which it has joined, by id."""
        return {one.id: one.title for one in self._bot.chats.groups_of(person)}

    def messages(self, person: int, chat: int = 0) -> list[Json]:
        """Return the messages of a dialog, or of a group, in their current state, oldest first."""
        found = self._bot.chats.group(chat) if chat else self._bot.chats.dialog(person)
        return list(found.messages.values())

    def shown(self, person: int, chat: int = 0) -> Json:
        """Return what the chat shows, for the inbox page."""
        is_stopped = not chat and self._bot.chats.dialog(person).is_stopped
        return {"messages": [_shown(one, chat) for one in self.messages(person, chat)], "blocked": is_stopped}

    def file(self, token: str) -> UploadedFile:
        """Return an uploaded file. Raises LookupError."""
        return self._bot.uploads.get(token)


def _shown(message: Json, chat: int) -> Json:
    body, sender = message["body"], message["sender"]
    files = [one for one in body["attachments"] or () if one["type"] != "inline_keyboard"]
    return {
        **({"author": sender["name"]} if chat else {}),
        "id": body["mid"],
        "from": "bot" if sender["user_id"] == BOT_ID else "person",
        "kind": "contact" if any(one["type"] == "contact" for one in files) else "text",
        "text": body["text"],
        "at": message["timestamp"] / 1000,
        "edited": message.get("is_edited", False),
        "reply_to": message.get("link", {}).get("message", {}).get("mid"),
        "buttons": [
            [{"text": one["text"], "data": one.get("payload", ""), "url": one.get("url", "")} for one in row]
            for row in rows_of(message)
        ],
        "files": [
            {"type": one["type"], "name": one.get("filename", ""), "attachment": one["payload"]["token"]}
            for one in files
            if "token" in one["payload"]
        ],
    }
