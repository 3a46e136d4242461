"""What was said in a chat between a person and the bot, as far as their runs are stored. Newest runs are read first."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct

from core.model.clock import from_ms
from core.model.text_marks import plain_text
from core.redis.keys import KEYS
from core.redis.store import Store
from scenarios.attributes import prepare
from scenarios.engine import State, Step
from scenarios.execution.runs import RunGone, Runs, StoredRun, shard_of_person
from scenarios.execution.versions import Versions
from scenarios.message import message, parse_mode

MOST_RUNS = 200
"""Read for one answer."""

_SENT = (State.COMPLETED, State.UNKNOWN)


class Said(Struct, frozen=True):
    """One message. `by`: the name of the person, or "bot". `message_id`: None if it is not known."""

    by: str
    text: str
    at: datetime
    message_id: Any = None
    is_bot: bool = False


async def conversation(
    store: Store, tenant: str, person: str, chat: str, *, limit: int, since: datetime | None, without: str
) -> list[Said]:
    """The last messages of a chat, oldest first. `person`: channel:user_id. `without`: a run that is left out.

    Raises StoreError.
    """
    runs, found = Runs(store, Versions(store), tenant), list[Said]()
    key = KEYS["runs"].at(shard_of_person(person, store.shards), tenant, person)
    for run in await store.command("ZRANGE", key, 0, MOST_RUNS - 1, "REV"):
        if run == without:
            continue
        try:
            stored = await runs.load(run)
        except RunGone:
            break  # older ones are gone, too
        if since is not None and from_ms(stored.began) < since:
            break
        if str(stored.event.get("chat_id") or stored.event.get("user_id")) == chat:
            found = [*_said_in(stored), *found]
        if len(found) >= limit:
            break
    return found[-limit:]


def _said_in(stored: StoredRun) -> Iterator[Said]:
    """What the person wrote, or pressed, and what the bot answered in this chat."""
    event, began = stored.event, from_ms(stored.began)
    words = str(event.get("event_text") or event.get("callback_data") or "")
    if words:
        name = str(event.get("first_name") or event.get("username") or event.get("user_id"))
        yield Said(name, words, began, event.get("message_id"))
    for step in stored.run.in_order:
        if step.action.type == "send" and step.state in _SENT and (answer := _answer(stored, step)):
            ended = from_ms(step.ended_at or stored.began)
            number = step.ending.returned.results.get("last_message_id") if step.ending else None
            yield Said("bot", answer, ended, number, is_bot=True)


def _answer(stored: StoredRun, step: Step) -> str:
    """The text of a `send` to this chat, without marks; "" for a message to other people or later."""
    section = stored.version.bot.settings.get("send")
    defaults: Mapping[str, Any] = {"placeholder": True, **(section if isinstance(section, Mapping) else {})}
    seen = prepare(step.action, defaults, step.values, stored.event)
    if any(seen.own.get(name) for name in ("to", "delay", "deliver_at", "private_answer")):
        return ""
    said = message(seen.seen)
    return plain_text(said["text"], parse_mode(said.get("parse_mode"))) if said else ""
