"""A conversation with a played bot: people write and press, time passes, the bot answers (C-99)."""

import re
from collections.abc import Mapping

from core.model.clock import to_ms
from couriers.telegram_bot import CHANNEL
from scenarios.bot.data import Data
from scenarios.bot.event_fields import Event
from scenarios.placeholders.values import as_text
from scenarios.stores.variables import Variables
from scenarios.testing.played_bot import TENANT, PlayedBot, SaidMessage
from scenarios.testing.played_directory import address_of

ACTS = ("user", "photo", "contact", "reply", "press")
"""What a person does: writes, sends a photo or its contact, replies to the bot's last message in the chat, presses."""
_NUMBERED = re.compile(r"^([0-9]+)\. (.+)$", re.MULTILINE)
_OF_PERSON = ("first_name", "last_name", "username", "language", "language_code", "directory_role", "directory_name")
"""What an event says of its person is true of later ones, until one says otherwise."""
PHONE = "+79990000007"
"""The number that people of a conversation share."""


def numbers_of(text: str) -> dict[str, str]:
    """Return the numbers that people write for the buttons that a text shows, by label."""
    return {label: number for number, label in _NUMBERED.findall(text)}


class NoSuchButton(Exception):
    """The bot's last messages to this person have no such button."""


class Conversation:
    """`group`: the chat in which people write, "" for the private one of each."""

    def __init__(self, bot: PlayedBot) -> None:
        self.bot = bot
        self.channel = CHANNEL
        self.group = ""
        self._events = 0
        self._known: dict[str, dict[str, Data]] = {}  # by person, what events have said of it

    async def act(self, what: str, given: Data, person: str) -> None:
        """Have a person do one of ACTS. Raises NoSuchButton."""
        text = as_text(given)
        if what == "user" and isinstance(given, Mapping):
            await self._write(
                person, as_text(given.get("event_text")), **{str(name): one for name, one in given.items()}
            )
        elif what == "user":
            await self._write(person, text)
        elif what == "photo":
            await self._write(person, "", attachments=[{"type": "photo", "file_id": text}])
        elif what == "contact":
            await self._write(person, "", attachments=[{"type": "contact", "phone": text, "is_own": True}])
        elif what == "reply":
            last = next(reversed(self._said_to(person)), None)
            said, number = (last.message.text, last.id) if last else ("", "1")
            await self._write(person, text, reply_message_id=number, reply_message_text=said)
        else:
            await self._press(person, text)

    async def _press(self, person: str, label: str) -> None:
        """Have a person press the button with this text, of the last message that has it. Raises NoSuchButton."""
        for said in reversed(self._said_to(person)):
            for one in (button for row in said.message.inline for button in row):
                if one["text"] == label and "url" not in one:
                    data = one.get("data") or label
                    press = {"kind": "callback", "callback_id": self.bot.new_id(), "callback_data": data}
                    return await self._receive(person, {**press, "message_id": said.id})
            if label in said.message.request_contact:
                return await self._write(person, "", attachments=[{"type": "contact", "phone": PHONE, "is_own": True}])
            if any(label in row for row in said.message.reply or ()):
                return await self._write(person, label)
            if number := numbers_of(said.message.text).get(label):
                return await self._write(person, number)
        raise NoSuchButton(f"no message has the button {label!r}")

    def _said_to(self, person: str) -> list[SaidMessage]:
        chat = f"{self.channel}:{self.group or person}"
        return [one for one in self.bot.delivered if one.place == chat]

    async def variables(self, person: str) -> dict[str, dict[str, Data]]:
        """Return the variables that an event of a person would see."""
        stored, about = Variables(self.bot.services.core.store, TENANT), self.about(person)
        return await stored.seen(self.bot.active.bot, about, to_ms(self.bot.now))

    def about(self, person: str) -> Event:
        address = address_of(self.channel, person)
        chat_type = "supergroup" if self.group else "private"
        return {
            "channel": self.channel,
            "user_id": address,
            "chat_id": self.group or address,
            "chat_type": chat_type,
            "is_bot": False,
        }

    async def _write(self, person: str, text: str, **fields: Data) -> None:
        message = {"kind": "text", "event_text": text, "message_id": self.bot.new_id(), "attachments": []}
        await self._receive(person, {**message, **fields})

    async def _receive(self, person: str, fields: Mapping[str, Data]) -> None:
        self._events += 1
        known = self._known.setdefault(person, {"first_name": "Anna"})
        known |= {name: fields[name] for name in _OF_PERSON if name in fields}
        about = {"id": str(self._events), **self.about(person), **known}
        await self.bot.receive(person, {**about, "event_date": self.bot.now.isoformat(), **fields})
