"""The view of a person on each channel: the chats of the inbox page, as JSON."""

from typing import Any

from sandbox.bot_api import BotApiServer
from sandbox.bot_api.people_actions import PeopleActions
from sandbox.events import ReceivedMessage, WrittenMessage
from sandbox.max.people_actions import PeopleActions as MaxPeople
from sandbox.state import SandboxState
from sandbox.vk.people_actions import PeopleActions as VkPeople
from sandbox.web.people import Person

SHOWN = 200  # messages of one chat
BOT, VK, MAX = "telegram-bot", "vk", "max"

Json = dict[str, Any]


class Chats:
    """The chats of people, in their current state."""

    def __init__(self, state: SandboxState, bot: BotApiServer, vk: VkPeople, max_people: MaxPeople) -> None:
        self._state, self._bot, self._joining, self._bot_api = state, bot.people, bot.joining, bot
        self._vk, self._max = vk, max_people

    def of(self, person: Person) -> dict[str, Json]:
        """Return the person's chats by channel; those of the joined groups and of further bots by channel and id of the
        group or bot.
        """
        own = {channel: self._chat(channel, address) for channel, address in person.addresses().items()}
        of_bot = self._groups(own[BOT]["address"]) | self._further_bots(own[BOT]["address"]) if BOT in own else {}
        return own | of_bot | (self._groups_of_max(own[MAX]["address"]) if MAX in own else {})

    def _further_bots(self, address: str) -> dict[str, Json]:
        """Return the chats with the bots of Telegram beside the first."""
        found = {}
        for token, bot in self._bot_api.further.items():
            shown = PeopleActions(bot).shown(int(address))
            about = {"address": address, "bot": token, "title": f"@{bot.user()['username']}"}
            found[f"{BOT}{bot.id}"] = {**about, **shown, "messages": shown["messages"][-SHOWN:]}
        return found

    def _groups_of_max(self, address: str) -> dict[str, Json]:
        """Return the chats of the groups of MAX in which a person is."""
        user = int(address)
        return {
            f"{MAX}{chat}": {"address": address, "chat": chat, "title": title, **self._max.shown(user, chat)}
            for chat, title in self._max.groups_of(user).items()
        }

    def _groups(self, address: str) -> dict[str, Json]:
        """Return the chats of the groups of Telegram that a person has joined."""
        groups = self._joining.groups_of(int(address))
        return {f"{BOT}{chat}": self._group(address, chat, title) for chat, title in groups.items()}

    def _group(self, address: str, chat: int, title: str) -> Json:
        shown = self._bot.shown(chat)
        return {"address": address, "chat": chat, "title": title, **shown, "messages": shown["messages"][-SHOWN:]}

    def _chat(self, channel: str, address: str) -> Json:
        if channel == BOT:
            shown = self._bot.shown(int(address))
            return {"address": address, **shown, "messages": shown["messages"][-SHOWN:]}
        if channel == MAX:
            return {"address": address, **self._max.shown(int(address))}
        return self.vk(address) if channel == VK else self._plain(channel, address)

    def vk(self, address: str) -> Json:
        """Return a person's chat in VK: messages in their current state, the keyboard, the answers to presses."""
        chat = self._plain(VK, address)
        shown = [(message, self._vk.shown(address, message.pop("reference", ""))) for message in chat["messages"]]
        messages = [message | now for message, now in shown if now is not None]
        keyboard, answers = self._vk.keyboard(address), self._vk.answers(address)
        return {**chat, "messages": messages, "keyboard": keyboard, "answers": answers}

    def _plain(self, channel: str, address: str) -> Json:
        return {"address": address, "messages": self._messages(channel, address)}

    def _messages(self, channel: str, address: str) -> list[Json]:
        received = [self._received(message) for message in self._state.messages.newest_of(channel, address, SHOWN)]
        written = [_written(message) for message in self._state.written.read(channel, address)]
        return sorted(received + written, key=lambda message: float(message["at"]))[-SHOWN:]

    def _received(self, message: ReceivedMessage) -> Json:
        of_vk = {"reference": message.reference} if message.channel == VK else {}
        return of_vk | {
            "id": message.number,
            "from": "sender",
            "text": message.text,
            "subject": message.subject,
            "at": message.at,
            "read": self._state.messages.is_read(message),
        }


def _written(message: WrittenMessage) -> Json:
    return {"id": message.number, "from": "person", "text": message.text, "at": message.at}
