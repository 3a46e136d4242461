"""A courier that writes messages to a file. The smallest courier; the example of docs/add-a-courier.md."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from couriers.sending import NEVER, Feature, Message, Outcome, Reason, Rejected, Sent, SetupError


@dataclass(frozen=True)
class Settings:
    """The field is ADA_ECHO_PATH."""

    path: str = "echo.jsonl"  # in the courier's directory


class Echo:
    """Implements `couriers.sending.Courier`. Several processes may append to one file: each message is one line."""

    channel = "echo"
    batch = 10
    parcel = 100
    remembers = NEVER  # a file accepts the same line twice
    shows = frozenset[Feature]()

    def __init__(self, path: Path) -> None:
        self.account = str(path)
        self._path = path

    async def attempt(self, messages: Sequence[Message]) -> Sequence[Outcome]:
        return [self._write(message) for message in messages]

    def _write(self, message: Message) -> Outcome:
        if not message.address:
            return Rejected(Reason.RECIPIENT_UNREACHABLE, "no address")
        line = {"address": message.address, "text": message.text, "random_id": message.random_id()}
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
        return Sent(str(message.random_id()))

    async def close(self) -> None:
        """Do nothing: the file is open only during an attempt."""


async def open(settings: Settings, directory: Path) -> Echo:  # noqa: A001 - the interface's name
    """Return the courier. Raises SetupError if the file cannot be written."""
    path = directory / settings.path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    except OSError as error:
        raise SetupError(f"{path} cannot be written ({error.strerror}): set ADA_ECHO_PATH") from error
    return Echo(path)
