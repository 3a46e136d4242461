"""The context in which an action is executed: its attributes, the event, and what the process offers.

An action is a function, `async def execute(context: Context, written: Attributes) -> Ending | Waiting`, which its
declaration, an `ActionType`, names. An execution may be repeated after a crash: what it does outside must then happen
once, so it uses `Context.identity`, which is the same for each repetition of the same step of the same event (C-92).
"""

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from pathlib import Path
from typing import IO, Any, Protocol

from msgspec import Struct

from core.directory.linking import Linking
from core.errors import Forbidden
from core.model.history_key import HistoryKey
from core.services import Services
from core.updates import rights
from core.updates.events import Event
from providers.models import FileCache, Models
from providers.sign_in import SignIn
from scenarios.bot.data import Data
from scenarios.bot.model import Bot
from scenarios.engine import Step
from scenarios.placeholders.attributes import Prepared
from scenarios.words import Text, sentence

log = logging.getLogger(__name__)


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


class Telegram(Protocol):
    """The calls of one bot by the names of their methods. `id`: of the bot."""

    id: int

    async def call(self, name: str, /, **parameters: Data) -> Any:
        """Return the result of a method, as JSON. Raises CallFailed of `couriers.telegram_bot`."""

    async def download(self, path: str, target: IO[bytes]) -> None:
        """Write the file that getFile names. Raises CallFailed, and what `target` raises."""

    async def close(self) -> None:
        """Close the connections."""


@dataclass(frozen=True, slots=True)
class ScenarioServices:
    """One set per process. `telegram`: the client of the Bot API, None without ADA_BOT_TOKEN. `models`: language models
    and speech services. `plugins`: what plugins have opened, by their names. `sign_in`: None without ADA_SIGN_IN.
    `linking`: None without a mail server for codes. `public_url`: of the web console, "" if it is not known.
    `office`: the group that gets what belongs to no delivery, "" for none.
    `pictures`: where actions draw. `allow_private`: whether requests may go to private addresses.
    """

    core: Services
    telegram: Telegram | None
    tenant: str
    timezone: tzinfo
    conversations: Conversations
    sign_in: SignIn | None = None
    linking: Linking | None = None
    public_url: str = ""
    office: str = ""
    models: Models = field(default_factory=Models.not_set_up)
    pictures: FileCache = field(default_factory=FileCache.nowhere)
    plugins: Mapping[str, Any] = field(default_factory=dict)
    allow_private: bool = False

    def now(self) -> datetime:
        """Return the server's time, aware."""
        return self.core.store.now()

    def now_ms(self) -> int:
        """Return the server's ms."""
        return time.time_ns() // 1_000_000 + self.core.store.clock_offset_ms


@dataclass(frozen=True, slots=True)
class Context:
    """One execution of one step. `folder`: that of the bot's files. `run`: the id of the run, in which the step is.

    `bot`: the version with which the run began. `prepared`: the step's attributes, with placeholders replaced.
    """

    services: ScenarioServices
    bot: Bot
    folder: Path
    run: str
    step: Step
    event: Event
    prepared: Prepared

    @property
    def identity(self) -> str:
        """Names this step of this event: the same in each repetition, and in no other step."""
        return f"{self.run}:{'.'.join(map(str, self.step.path))}"

    @property
    def channel(self) -> str:
        """The channel in which the person is, as in a contact."""
        return str(self.event["channel"])

    @property
    def chat(self) -> str:
        """The address of the event's chat in the channel."""
        return str(self.event.get("chat_id") or self.person)

    @property
    def person(self) -> str:
        """The address of the event's person in the channel."""
        return str(self.event.get("user_id") or "")

    def missing_scope(self, scope: str) -> Text:
        """Return why what needs this scope over HTTP may not be done for the event; empty if it may, as for every event
        of a provider.
        """
        if rights.permits(self.event, scope):
            return ""
        return sentence("api_key_event_was", scope=scope)

    def require(self, scope: str) -> None:
        """Check a right of the bot. Raises Forbidden SCOPE_MISSING."""
        if reason := self.missing_scope(scope):
            raise Forbidden("SCOPE_MISSING", reason)

    @property
    def folders(self) -> Sequence[Path]:
        """The folders whose files may be sent: the bot's, that of speech and that of pictures. Names are relative to
        the first one.
        """
        return (self.folder, self.services.models.sound_folder, self.services.pictures.folder)

    def warn(self, message: Text) -> None:
        """Report something to the author that does not make the action fail."""
        place = self.step.action.place
        log.warning("%s, line %d, run %s: %s", place.file, place.line, self.run, message)


@dataclass(frozen=True, slots=True)
class Waiting:
    """The step has ordered a delivery and ends when that delivery does. `one`: it has one recipient with one contact.
    `is_new`: it was not ordered before. `others`: further deliveries of the same message to more people.
    """

    delivery: HistoryKey
    one: bool = False
    is_new: bool = False
    others: Sequence[HistoryKey] = ()


@dataclass(frozen=True, slots=True)
class Asking:
    """The step has asked a person and ends with the answer, or at `until` (ms). `remind`: when it asks again (ms), 0
    for never; `reminders`: how often it has. `delivery`: of the question, or of its last reminder; `verdict`: what
    became of it, "" until it has ended.
    """

    until: int
    remind: int = 0
    reminders: int = 0
    delivery: HistoryKey | None = None
    verdict: str = ""

    @property
    def due(self) -> int:
        """Return when something has to be done without an answer (ms)."""
        return min(self.until, self.remind or self.until)

    @property
    def under_way(self) -> HistoryKey | None:
        """Return the delivery of which it is not known yet whether it has arrived."""
        return None if self.verdict else self.delivery

    @property
    def results(self) -> dict[str, str]:
        """Return what is known of the question's delivery, for the chain and for `show RUN`."""
        return {"delivery_id": self.delivery.id, "verdict": self.verdict or "in_progress"} if self.delivery else {}
