"""Opens what the actions of one process use, among it the messages of a chat between a person and the bot, as far as
their runs are stored.
"""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo

from core.directory.linking import Linking
from core.model.clock import from_ms
from core.model.history_key import own_name
from core.model.text.text_marks import plain_text
from core.orders import SendingPolicy
from core.redis.keys import KEYS
from core.redis.store import Store
from core.services import Services
from core.services import open_services as open_core
from providers.models import FileCache, Models
from providers.sign_in import SignIn
from scenarios.bot.data import Data
from scenarios.context import Said, ScenarioServices, Telegram
from scenarios.engine import State, Step
from scenarios.execution.runs import RunGone, Runs, StoredRun
from scenarios.execution.versions import Versions
from scenarios.placeholders.attributes import prepare
from scenarios.schema.attributes import converted
from scenarios.sending.message import MessageAttributes, message

MOST_RUNS = 200
"""Read for one answer, the newest first."""

_SENT = (State.COMPLETED, State.UNKNOWN)
_ELSEWHERE = ("to", "delay", "deliver_at", "private_answer")
"""The fields of a `send` that is no answer in the chat of the event."""


class StoredConversations:
    """The conversations of one tenant's bot; one per process. `timezone`: of a bot that names none."""

    def __init__(self, store: Store, tenant: str, timezone: tzinfo) -> None:
        self._store = store
        self._tenant = tenant
        self._timezone = timezone
        self._runs = Runs(store, Versions(store), tenant)

    async def last(self, person: str, chat: str, *, limit: int, since: datetime | None, without: str) -> list[Said]:
        key = KEYS["runs"].at(self._store.shard_of(own_name(self._tenant, person)), self._tenant, person)
        found: list[Said] = []
        for run in await self._store.command("ZRANGE", key, 0, MOST_RUNS - 1, "REV"):
            stored = await self._loaded(run) if run != without else None
            if stored is None:
                continue
            if len(found) >= limit or (since is not None and from_ms(stored.began) < since):
                break
            if str(stored.event.get("chat_id") or stored.event.get("user_id")) == chat:
                found = [*said_in(stored, stored.version.bot.zone(self._timezone)), *found]
        return found[-limit:]

    async def _loaded(self, run: str) -> StoredRun | None:
        try:
            return await self._runs.load(run)
        except RunGone:
            return None


def said_in(stored: StoredRun, zone: tzinfo) -> Iterator[Said]:
    """Emit what the person wrote or pressed, and what the bot answered in this chat. `zone`: that of the bot."""
    event, began = stored.event, from_ms(stored.began)
    if words := str(event.get("event_text") or event.get("callback_data") or ""):
        name = str(event.get("first_name") or event.get("username") or event.get("user_id"))
        yield Said(name, words, began, event.get("message_id"))
    for step in stored.run.in_order:
        if step.action.type in ("send", "ask") and step.state in _SENT and (answer := _answer(stored, step, zone)):
            number = step.ending.returned.results.get("last_message_id") if step.ending else None
            yield Said("bot", answer, from_ms(step.ended_at or stored.began), number, is_bot=True)


def _answer(stored: StoredRun, step: Step, zone: tzinfo) -> str:
    """Return the text of a `send`, without marks; "" for a message elsewhere or later."""
    section = stored.version.bot.settings.get("send")
    defaults: Mapping[str, Data] = {"placeholder": True, **(section if isinstance(section, Mapping) else {})}
    language = step.language(stored.event)
    action = stored.version.bot.action(step.scenario, step.path[-1], step.action, language)
    prepared = prepare(action, defaults, step.values, stored.event, zone)
    said = (
        None
        if any(prepared.own.get(name) for name in _ELSEWHERE)
        else message(converted(MessageAttributes, prepared, zone))
    )
    return plain_text(said.text, said.mode) if said else ""


@dataclass(frozen=True, slots=True)
class ScenarioOptions:
    """The settings of a bot of scenarios. `telegram`: opens the client of the Bot API; None for a bot that is not in
    Telegram. `models`: the caller closes them. `pictures`: where actions draw.
    """

    tenant: str = "default"
    timezone: tzinfo = UTC
    policy: SendingPolicy | None = None
    telegram: Callable[[], Telegram] | None = None
    models: Models = field(default_factory=Models.not_set_up)
    pictures: FileCache = field(default_factory=FileCache.nowhere)
    sign_in: SignIn | None = None
    linking: Linking | None = None
    public_url: str = ""
    office: str = ""
    allow_private: bool = False


@asynccontextmanager
async def open_services(store: Store, options: ScenarioOptions) -> AsyncIterator[ScenarioServices]:
    """Open the services of one bot, until the end of the block. Raises SetupError."""
    async with open_core(store, options.policy) as core, bot_services(core, options) as services:
        yield services


@asynccontextmanager
async def bot_services(core: Services, options: ScenarioOptions) -> AsyncIterator[ScenarioServices]:
    """Open what a bot has besides the services that all bots of a process share. Raises SetupError."""
    telegram = options.telegram() if options.telegram else None
    try:
        yield ScenarioServices(
            core=core,
            telegram=telegram,
            tenant=options.tenant,
            timezone=options.timezone,
            conversations=StoredConversations(core.store, options.tenant, options.timezone),
            sign_in=options.sign_in,
            linking=options.linking,
            public_url=options.public_url,
            office=options.office,
            models=options.models,
            pictures=options.pictures,
            allow_private=options.allow_private,
        )
    finally:
        if telegram:
            await telegram.close()
