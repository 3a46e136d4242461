"""What a guide asks its reader to do at the inbox page, as a command: `person WHAT CHANNEL ADDRESS TEXT`.

write    the person writes it
press    the person presses the newest button with this text
sees     waits until the person has got it, as a message or after a press; prints it
code     waits for a new code in the mailbox TEXT; writes it in the channel
"""

import json
import os
import re
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import Request, urlopen

from core.directory.linking import ALPHABET, LENGTH
from tests.support.waiting import await_sync

CODE = re.compile(rf"\b[{ALPHABET}]{{{LENGTH}}}\b")
PAGE = re.compile(r"http://[\d.]+:\d+/")
PATIENCE = 30.0


def page() -> str:
    """The address of the inbox page, as `./ada up` or `./ada sandbox` has printed it."""
    logs = (Path(os.environ.get("GUIDE_UP", "")), Path("up.log"), Path("sandbox.log"))
    found: list[str] = PAGE.findall(next(log for log in logs if log.is_file()).read_text())
    return found[-1]


def call(path: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request(page() + path, data, {"Content-Type": "application/json"})) as response:
        return json.load(response)


def address_of(channel: str, address: str) -> Any:
    return address if channel in ("sms", "email") else int(address)


def write(channel: str, address: str, text: str) -> None:
    call(f"write/{channel}", {"address": address_of(channel, address), "text": text})


def press(channel: str, address: str, text: str) -> None:
    def button() -> Any:
        messages = call(f"chat/{channel}?address={address}")["messages"]
        return next((one["id"] for one in reversed(messages) if has_button(one, text)), None)

    await_sync(lambda: button() is not None, f"the button {text}", PATIENCE)
    call(f"press/{channel}", {"address": address_of(channel, address), "message": button(), "button": text})


def has_button(message: Any, text: str) -> bool:
    return any(one.get("text") == text for row in message.get("buttons", ()) for one in row)


def texts(channel: str, address: str) -> list[str]:
    if channel in ("telegram-bot", "vk"):
        chat = call(f"chat/{channel}?address={address}")
        return [one["text"] for one in (*chat["messages"], *chat["answers"])]
    return [one["text"] for one in call(f"inbox.json?channel={channel}&address={quote(address)}")["messages"]]


def sees(channel: str, address: str, text: str) -> None:
    await_sync(lambda: any(text in one for one in texts(channel, address)), f"“{text}” in {channel}", PATIENCE)
    print(next(one for one in reversed(texts(channel, address)) if text in one))  # noqa: T201 - for the next mark


def code(channel: str, address: str, mailbox: str) -> None:
    used = Path(".codes")

    def new() -> str:
        known = used.read_text() if used.exists() else ""
        found = [one for mail in texts("email", mailbox) for one in CODE.findall(mail)]
        return next((one for one in found if one not in known), "")

    await_sync(lambda: bool(new()), "the mail", PATIENCE)
    written = new()
    with used.open("a") as file:
        file.write(f"{written}\n")
    write(channel, address, written)


if __name__ == "__main__":
    what, *rest = sys.argv[1:]
    {"write": write, "press": press, "sees": sees, "code": code}[what](*rest)
