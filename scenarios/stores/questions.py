"""Questions that wait for an answer: which run asked a person last in a chat, and what was written so far (C-95).

The run decides: a question is open while its step has not ended, and what is here only leads to it. Guarantees: an
event answers one question, also if it is handled again; an event counts as one attempt.
"""

from collections.abc import Mapping
from datetime import timedelta

from msgspec import Struct, json

from core.redis.keys import KEYS
from core.redis.store import Store
from scenarios.bot.data import Data
from scenarios.engine import Path
from scenarios.stores import step_results

_LEEWAY = timedelta(minutes=1)
"""A question is found so long after its time limit, which is that of the run."""


class AskedBy(Struct, frozen=True):
    """The step that asks. `task`: the one that drove the run when the answer was noted, "" before."""

    run: str
    path: Path
    task: str = ""


class Questions:
    """The open questions of one tenant's bot."""

    def __init__(self, store: Store, tenant: str) -> None:
        self._store = store
        self._tenant = tenant

    async def open(self, event: Mapping[str, Data], by: AskedBy, timeout: timedelta) -> None:
        """Have the next events of this person in this chat answer the step. A question before it gets no answer any
        more.
        """
        lasts = int((timeout + _LEEWAY).total_seconds() * 1000)
        await self._store.command("SET", self._key(event), json.encode(by).decode(), "PX", lasts)

    async def of(self, event: Mapping[str, Data]) -> AskedBy | None:
        """Return the step that asked last in the chat of an event."""
        stored = await self._store.command("GET", self._key(event))
        return json.decode(stored, type=AskedBy) if stored else None

    async def answered_by(self, event: Mapping[str, Data], event_run: str) -> AskedBy | None:
        """Return the question that an event was found to answer at an earlier attempt."""
        key = KEYS["stepresult"].at(self._shard(event), self._tenant, _step(event_run))
        stored = await self._store.command("GET", key)
        return json.decode(stored, type=AskedBy) if stored else None

    async def note_answer(self, event: Mapping[str, Data], event_run: str, by: AskedBy) -> None:
        """Note that an event answers this question, before anything is done for it."""
        words = self._tenant, _step(event_run), json.encode(by).decode(), step_results.KEPT_MS
        await self._store.run("remember_step", self._shard(event), *words)

    async def note_attempt(self, event: Mapping[str, Data], event_run: str, by: AskedBy) -> int:
        """Count an event as an attempt at the question; return how many there were."""
        path = ".".join(map(str, by.path))
        key = KEYS["answer_attempts"].at(self._shard(event), self._tenant, by.run, path)
        await self._store.write_lasting(step_results.KEPT_MS, "SADD", key, event_run)
        return int(await self._store.command("SCARD", key))

    def _key(self, event: Mapping[str, Data]) -> str:
        person = str(event["user_id"])
        chat = str(event.get("chat_id") or person)
        return KEYS["question"].at(self._shard(event), self._tenant, str(event["channel"]), person, chat)

    def _shard(self, event: Mapping[str, Data]) -> int:
        return self._store.shard_of_person(self._tenant, str(event["channel"]), str(event["user_id"]))


def _step(event_run: str) -> str:
    return f"answer:{event_run}"
