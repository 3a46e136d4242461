"""The stage of every play of `./ada demo`: the API, a way to show a line, and the sandbox with its chats.

A chat is that of a person with the bot: it writes, presses buttons, and shows what the bot answers, by the calls of the
sandbox's page (docs/sandbox.md), as a person in a browser does.
"""

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cli.client.http_client import HttpClient
from cli.command import CommandFailed
from cli.commands.start.installation import simulated_channels
from cli.processes.supervisor import PrintLine
from core.directory.linking import ALPHABET, LENGTH
from couriers.channel import channels
from couriers.email.channel import CHANNEL as MAIL
from couriers.telegram_bot import CHANNEL

ShowLine = Callable[[str, str], None]
"""Shows one line of a person: (name, line)."""

_TIMEOUT = 60.0
_POLL_INTERVAL = 0.05
_CODE = re.compile(f"[{ALPHABET}]{{{LENGTH}}}")


class SandboxChat:
    """The chat of the person with the Telegram id `address`, who is shown as `name`: that with the bot, or a group.
    `language`: that of the person's Telegram; the sandbox's default without it.
    """

    def __init__(
        self, sandbox: HttpClient, address: int, name: str, show: ShowLine, *, group: int = 0, language: str = ""
    ) -> None:
        self._sandbox = sandbox
        self._address = address
        self._name = name
        self._show = show
        self._group = group
        self._about = {
            "name": name,
            **({"chat": group} if group else {}),
            **({"language": language} if language else {}),
        }
        self._shown: dict[int, str] = {}

    async def write(self, text: str, *, is_answered: bool = True, reply_to: int = 0) -> None:
        """Write to the bot, or reply to a message of it; return after its answer, if one is expected. Raises
        CommandFailed if none comes.
        """
        before = {message["id"] for message in await self._read()}
        self._show(self._name, text)
        body = {"address": self._address, "text": text, **self._about, **({"reply_to": reply_to} if reply_to else {})}
        await self._sandbox.call("POST", f"/write/{CHANNEL}", body)
        if is_answered:
            await self.find(lambda message: message["id"] not in before, "an answer")

    async def press(self, label: str) -> None:
        """Press the newest button with this label; return after the answer, a message that is new or has another text.
        Raises CommandFailed if there is no such button, or no answer, in time.
        """
        message, data = await self.find(lambda message: _button(message, label), f"a button {label!r}")
        before = dict(self._shown)
        self._show(self._name, f"[{label}]")
        body = {"address": self._address, "message": message, "button": data}
        await self._sandbox.call("POST", f"/press/{CHANNEL}", body)
        await self.find(lambda message: before.get(message["id"]) != message["text"], f"an answer to [{label}]")

    async def read(self, fragment: str) -> str:
        """Wait for a message with this text; return it. Raises CommandFailed if there is none in time."""
        found = await self.find(lambda message: message if fragment in message["text"] else None, f"{fragment!r}")
        return str(found["text"])

    async def find(self, find: Callable[[dict[str, Any]], Any], what: str) -> Any:
        """Show what the bot writes until `find` returns something for a message, newest first; return that."""
        try:
            async with asyncio.timeout(_TIMEOUT):
                while True:
                    messages = await self._read()
                    found = next((one for one in map(find, reversed(messages)) if one), None)
                    if found:
                        return found
                    await asyncio.sleep(_POLL_INTERVAL)
        except TimeoutError:
            raise CommandFailed(f"the bot did not show {what} to {self._name} within {_TIMEOUT:.0f} s") from None

    async def _read(self) -> list[dict[str, Any]]:
        """Return the bot's messages; new and changed ones are shown."""
        chat = await self._sandbox.call("GET", f"/chat/{CHANNEL}?address={self._group or self._address}")
        messages = [message for message in chat["messages"] if message["from"] == "bot"]
        for message in messages:
            if self._shown.get(message["id"]) != message["text"]:
                self._shown[message["id"]] = message["text"]
                for line in message["text"].splitlines() or [f"[{message['kind']}]"]:
                    self._show("bot", line)
        return messages


def _button(message: dict[str, Any], label: str) -> tuple[int, str] | None:
    """Return the message's id and the button's data."""
    for button in (button for row in message["buttons"] for button in row):
        if button["text"] == label:
            return message["id"], button["data"]
    return None


async def mailed_code(sandbox: HttpClient, email: str) -> str:
    """Return the code in the last mail to this address."""
    messages = (await sandbox.call("GET", "/inbox.json", query={"channel": MAIL.name, "address": email}))["messages"]
    found = _CODE.search(messages[-1]["text"]) if messages else None
    if found is None:
        raise CommandFailed(f"no code was mailed to {email}")
    return found[0]


@dataclass(frozen=True)
class Stage:
    """The place of a play. `show` prints a line of it; `kill` kills a process, which then runs again; `language`
    is that of the story, if the play has several.
    """

    api: HttpClient
    sandbox: HttpClient
    show: PrintLine
    kill: Callable[[str], None]
    language: str

    def chat(self, address: int, name: str, *, group: int = 0) -> SandboxChat:
        return SandboxChat(self.sandbox, address, name, self.show, group=group, language=self.language)


def sample_contacts(person: int) -> Mapping[str, str]:
    """Return channel → address of a person of the plays, in the channels in which it has one."""
    return {name: one.samples[person] for name, one in channels().items() if person in one.samples}


def sample_channels() -> Sequence[str]:
    """Return the simulated channels in which the people of the plays have addresses."""
    return [name for name in simulated_channels() if channels()[name].samples]


def has_inbox(channel: str) -> bool:
    return channels()[channel].is_simulated
