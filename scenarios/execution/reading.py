"""What became of a run, for people: for each action its state, what released or dropped it, and when (C-39)."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct

from core.errors import NotFound
from core.model.clock import from_ms
from core.redis.keys import KEYS
from core.redis.store import Store
from core.updates import events
from scenarios.actions import installed_actions
from scenarios.engine import Path, State, Step
from scenarios.engine.reasons import explain
from scenarios.execution.runs import RunGone, Runs, StoredRun, shard_of_person
from scenarios.execution.secrets import Secrets
from scenarios.execution.step_executor import prepared_of
from scenarios.execution.versions import Versions
from scenarios.execution.waiting.waits import SLOW
from scenarios.schema import ActionType
from scenarios.sending.message import message

PAGE = 100


class ActionView(Struct, frozen=True):
    """One action. `n` counts from 1 in the author's order; `by`: the number of the action that released or dropped it.
    `moved_at`, `ended_at`: when it was released or dropped, and when it ended.

    `given`: its fields as it ran. `send`: the message of a `send`. `results`: what it returned. All without secrets.
    `waits_for`: of a parked run, the delivery, or `slow`.
    """

    n: int
    scenario: str
    type: str
    place: str
    state: str
    cause: str | None
    by: int | None
    why: str
    moved_at: datetime | None
    ended_at: datetime | None
    error: str
    given: Mapping[str, Any]
    send: Mapping[str, Any] | None
    results: Mapping[str, Any]
    waits_for: str | None


class RunView(Struct, frozen=True):
    """One run. `state`: running or over."""

    id: str
    person: str
    state: str
    version: str
    scenarios: Sequence[str]
    began: datetime
    ended: datetime | None
    event: Mapping[str, Any]
    actions: Sequence[ActionView]


class RunReader:
    """One per process. Runs of other tenants look like runs that do not exist."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._runs = Runs(store, Versions(store), "")
        self._types = installed_actions().types

    async def read(self, tenant: str, run: str) -> RunView:
        """Raises NotFound RUN_NOT_FOUND."""
        try:
            stored = await self._runs.load(run)
        except RunGone:
            raise not_found() from None
        if stored.tenant != tenant:
            raise not_found()
        return _view(stored, self._types)

    async def newest(
        self, tenant: str, person: str, cursor: str | None = None, limit: int = PAGE
    ) -> tuple[list[RunView], str | None]:
        """A page of a person's runs, the newest first, and the cursor of the next one. `person`: channel:user_id."""
        shard = shard_of_person(person, self._store.shards)
        key = KEYS["runs"].at(shard, tenant, person)
        rank = await self._store.command("ZREVRANK", key, cursor) if cursor else None
        start = 0 if rank is None else int(rank) + 1
        runs = await self._store.command("ZRANGE", key, start, start + limit - 1, "REV")
        views = [await self._found(tenant, run) for run in runs]
        return [view for view in views if view], runs[-1] if len(runs) == limit else None

    async def _found(self, tenant: str, run: str) -> RunView | None:
        try:
            return await self.read(tenant, run)
        except NotFound:
            return None


def not_found() -> NotFound:
    return NotFound("RUN_NOT_FOUND", "There is no such run.")


def _view(stored: StoredRun, types: Mapping[str, ActionType]) -> RunView:
    steps = stored.run.in_order
    numbers = {step.path: n for n, step in enumerate(steps, 1)}
    returned = (step.ending.returned.results for step in steps if step.ending)
    secrets = Secrets(stored.version.bot.variables, returned)
    return RunView(
        id=stored.id,
        person=events.person_of(stored.event),
        state="over" if stored.is_over else "running",
        version=stored.version.name,
        scenarios=stored.scenarios,
        began=from_ms(stored.began),
        ended=from_ms(stored.ended) if stored.ended else None,
        event=stored.event,
        actions=[_action(stored, step, numbers, types.get(step.action.type), secrets) for step in steps],
    )


def _action(
    stored: StoredRun, step: Step, numbers: Mapping[Path, int], kind: ActionType | None, secrets: Secrets
) -> ActionView:
    ending = step.ending
    given, send = _given(stored, step, kind)
    return ActionView(
        n=numbers[step.path],
        scenario=step.scenario,
        type=step.action.type,
        place=f"{step.action.place.file}:{step.action.place.line}",
        state=str(step.state),
        cause=str(step.cause) if step.cause else None,
        by=numbers[step.caused_by] if step.caused_by else None,
        why=secrets.in_text(explain(step, numbers, stored.run) if step.cause else "it waits for the action before it"),
        moved_at=from_ms(step.moved_at) if step.moved_at else None,
        ended_at=from_ms(step.ended_at) if step.ended_at else None,
        error=secrets.in_text(ending.error) if ending else "",
        given=secrets.hidden(given),
        send=secrets.hidden(send),
        results=secrets.hidden(ending.returned.results) if ending else {},
        waits_for=_waits_for(stored, step),
    )


def _given(
    stored: StoredRun, step: Step, kind: ActionType | None
) -> tuple[Mapping[str, Any], Mapping[str, Any] | None]:
    """Return the fields with which a step that was released has run, and the message of a `send`."""
    if kind is None or step.cause is None or (step.state is State.DROP and step.ending is None):
        return {}, None
    prepared = prepared_of(stored, step, kind)
    return prepared.own, message(prepared.seen) if kind.name == "send" else None


def _waits_for(stored: StoredRun, step: Step) -> str | None:
    if step.is_over or step.path not in stored.waits:
        return None
    waiting = stored.waits[step.path]
    return str(waiting.delivery) if waiting else SLOW
