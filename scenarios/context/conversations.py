"""Earlier messages of a chat, as actions read them. `scenarios.execution` has the runs in which it is stored."""

from datetime import datetime
from typing import Protocol

from msgspec import Struct

from scenarios.bot.data import Data


class Said(Struct, frozen=True):
    """One message. `by`: the name of the person, or "bot". `message_id`: None if it is not known."""

    by: str
    text: str
    at: datetime
    message_id: Data = None
    is_bot: bool = False


class Conversations(Protocol):
    """The conversations of people with the bot."""

    async def last(self, person: str, chat: str, *, limit: int, since: datetime | None, without: str) -> list[Said]:
        """Return the last messages of a chat, oldest first. `person`: channel:user_id. `without`: a run that is left
        out.

        Raises StoreError.
        """
