"""How a person uses a channel: the chat with the Telegram bot, with its buttons, and a plain telephone."""

import re
from typing import Any

from core.directory.linking import ALPHABET, LENGTH
from sandbox.sandbox import Sandbox
from tests.support.waiting import until

Json = dict[str, Any]

_CODE = re.compile(f"[{ALPHABET}]{{{LENGTH}}}")
_WITHIN = 30.0


class Chat:
    """The Telegram chat of the person with the id `user`, whose telephone is in English."""

    def __init__(self, sandbox: Sandbox, user: int) -> None:
        self._people = sandbox.bot_api.people
        self._user = user
        self._seen: dict[int, str] = {}
        self._people.set_person(user, language="en")

    def write(self, text: str) -> None:
        self._seen = {message["id"]: message["text"] for message in self._messages()}
        self._people.write(self._user, text)

    async def press(self, label: str) -> None:
        """Presses the newest button with this label, selected or not; waits until there is one."""
        found = await until(lambda: self._button(label), within=_WITHIN, every=0.02)
        assert found
        self._seen = {message["id"]: message["text"] for message in self._messages()}
        self._people.press(self._user, *found)

    async def reads(self, *fragments: str) -> str:
        """Waits for a message of the bot, new or changed since the last own action, with all these fragments."""
        return await until(lambda: self._find(fragments), within=_WITHIN, every=0.02)

    def count(self, fragment: str) -> int:
        """How many messages of the bot contain this."""
        return sum(fragment in message["text"] for message in self._messages())

    def _messages(self) -> list[Json]:
        """The bot's messages in their current state, oldest first."""
        return [message for message in self._people.shown(self._user)["messages"] if message["from"] == "bot"]

    def _find(self, fragments: tuple[str, ...]) -> str:
        for message in reversed(self._messages()):
            text = str(message["text"])
            if self._seen.get(message["id"]) != text and all(fragment in text for fragment in fragments):
                return text
        return ""

    def _button(self, label: str) -> tuple[int, str] | None:
        for message in reversed(self._messages()):
            for button in (button for row in message["buttons"] for button in row):
                if button["text"] in (label, f"✅ {label}"):
                    return message["id"], button["data"]
        return None


class Phone:
    """A telephone with this number; `inbound` is the address that the gateway calls for an incoming SMS."""

    def __init__(self, sandbox: Sandbox, number: str, inbound: str) -> None:
        self._sandbox = sandbox
        self._number = number
        self._inbound = inbound
        self._seen = 0

    async def write(self, text: str) -> None:
        """Sends an SMS. The gateway repeats it until the API has accepted it."""
        self._seen = self._sandbox.state.messages.newest
        await until(lambda: self._is_accepted(text), within=_WITHIN, every=0.2)

    async def _is_accepted(self, text: str) -> bool:
        return await self._sandbox.sms.write(self._number, text, self._inbound) == 200

    async def reads(self, *fragments: str) -> str:
        """Waits for an SMS, newer than the last own one, with all these fragments."""
        return await until(lambda: self._find(fragments), within=_WITHIN, every=0.02)

    def _find(self, fragments: tuple[str, ...]) -> str:
        for message in self._sandbox.state.inbox("sms", self._number):
            if message.number > self._seen and all(fragment in message.text for fragment in fragments):
                return message.text
        return ""


async def mailed_code(sandbox: Sandbox, email: str) -> str:
    """The code in the first mail to this address; waits for it."""
    (mail, *_) = await until(lambda: sandbox.state.inbox("email", email), within=_WITHIN, every=0.02)
    found = _CODE.search(mail.text)
    assert found, mail.text
    return found[0]
