"""What a person sees on each channel: the chats of the inbox page, as JSON."""

from typing import Any

from sandbox.bot_api.people_actions import PeopleActions
from sandbox.events import ReceivedMessage, WrittenMessage
from sandbox.state import SandboxState
from sandbox.web.people import Person

SHOWN = 200  # messages of one chat
BOT = "telegram-bot"

Json = dict[str, Any]


class Chats:
    """The chats of people, in their current state."""

    def __init__(self, state: SandboxState, bot: PeopleActions) -> None:
        self._state, self._bot = state, bot

    def of(self, person: Person) -> dict[str, Json]:
        """Return the person's chats by channel."""
        return {channel: self._chat(channel, address) for channel, address in person.addresses().items()}

    def _chat(self, channel: str, address: str) -> Json:
        if channel == BOT:
            shown = self._bot.shown(int(address))
            return {"address": address, **shown, "messages": shown["messages"][-SHOWN:]}
        return {"address": address, "messages": self._messages(channel, address)}

    def _messages(self, channel: str, address: str) -> list[Json]:
        received = [self._received(message) for message in self._state.messages.newest_of(channel, address, SHOWN)]
        written = [_written(message) for message in self._state.written.read(channel, address)]
        return sorted(received + written, key=lambda message: float(message["at"]))[-SHOWN:]

    def _received(self, message: ReceivedMessage) -> Json:
        return {
            "id": message.number,
            "from": "sender",
            "text": message.text,
            "subject": message.subject,
            "at": message.at,
            "read": self._state.messages.is_read(message),
        }


def _written(message: WrittenMessage) -> Json:
    return {"id": message.number, "from": "person", "text": message.text, "at": message.at}
