"""Messages of a chat between a person and the bot, as far as their runs are stored."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from core.model.clock import from_ms
from core.model.history_key import own_name
from core.model.text.text_marks import plain_text
from core.redis.keys import KEYS
from core.redis.store import Store
from scenarios.bot.data import Data
from scenarios.context import Said
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
    """The conversations of one tenant's bot; one per process."""

    def __init__(self, store: Store, tenant: str) -> None:
        self._store = store
        self._tenant = tenant
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
                found = [*said_in(stored), *found]
        return found[-limit:]

    async def _loaded(self, run: str) -> StoredRun | None:
        try:
            return await self._runs.load(run)
        except RunGone:
            return None


def said_in(stored: StoredRun) -> Iterator[Said]:
    """Emit what the person wrote or pressed, and what the bot answered in this chat."""
    event, began = stored.event, from_ms(stored.began)
    if words := str(event.get("event_text") or event.get("callback_data") or ""):
        name = str(event.get("first_name") or event.get("username") or event.get("user_id"))
        yield Said(name, words, began, event.get("message_id"))
    for step in stored.run.in_order:
        if step.action.type in ("send", "ask") and step.state in _SENT and (answer := _answer(stored, step)):
            number = step.ending.returned.results.get("last_message_id") if step.ending else None
            yield Said("bot", answer, from_ms(step.ended_at or stored.began), number, is_bot=True)


def _answer(stored: StoredRun, step: Step) -> str:
    """Return the text of a `send`, without marks; "" for a message elsewhere or later."""
    section = stored.version.bot.settings.get("send")
    defaults: Mapping[str, Data] = {"placeholder": True, **(section if isinstance(section, Mapping) else {})}
    language = step.language(stored.event)
    action = stored.version.bot.action(step.scenario, step.path[-1], step.action, language)
    prepared = prepare(action, defaults, step.values, stored.event)
    said = (
        None
        if any(prepared.own.get(name) for name in _ELSEWHERE)
        else message(converted(MessageAttributes, prepared, UTC))
    )
    return plain_text(said.text, said.mode) if said else ""
