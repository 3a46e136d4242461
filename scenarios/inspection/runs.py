"""Explains a run to people: for each action its state, what released or dropped it, and when (C-39)."""

from collections.abc import Mapping, Sequence
from datetime import UTC
from functools import cached_property

import msgspec
from msgspec import Struct

from core.errors import Conflict, Invalid, NotFound, Refused
from core.model.clock import from_ms, write_time
from core.model.json_form import JsonObject
from core.queue import QueueClient
from core.redis.store import Store
from core.updates import events
from scenarios.actions import installed_actions
from scenarios.bot.data import Data
from scenarios.context import Asking
from scenarios.engine import Path, State, Step
from scenarios.engine.graph import explain, node_id
from scenarios.execution.runs import SLOW, RunGone, Runs, StoredRun
from scenarios.execution.secrets import Secrets
from scenarios.execution.step_executor import prepared_of
from scenarios.execution.versions import Versions
from scenarios.inspection.run_listing import RunFacts, RunFilter, RunListing, RunSummary
from scenarios.placeholders.attributes import Prepared
from scenarios.schema import ActionType
from scenarios.schema.conditions import unmet
from scenarios.words import Translations, sentence, translations

PAGE = 100


class ActionView(Struct, frozen=True):
    """One action of a run. `n` counts from 1; `node`: its id in the graph. `cause`, `by` and `why`: what
    released or dropped it, the action that did, and both in words. `given`: its fields with placeholders replaced,
    `send`: the message of a `send`, `results`: what it returned; secrets are hidden in all of them. `waits_for`: the
    delivery for which a parked run waits, or `slow`. `translations`: language → `error` in it, if it is known.
    """

    n: int
    node: str
    scenario: str
    type: str
    place: str
    state: str
    cause: str | None
    by: int | None
    why: str
    moved_at: str | None
    ended_at: str | None
    error: str
    given: JsonObject
    send: JsonObject | None
    results: JsonObject
    waits_for: str | None
    translations: Translations


class RunView(RunFacts, frozen=True):
    """All actions that one event has started. `name`: of the person, if the directory knows it."""

    event: JsonObject
    actions: Sequence[ActionView]
    name: str | None = None


class RunReader:
    """One per process. Runs of other tenants look like runs that do not exist."""

    def __init__(self, store: Store, secrets: Mapping[str, str] | None = None) -> None:
        """Read runs of a store. `secrets`: those of the process, by the names of their variables."""
        self._secrets = secrets or {}
        self._runs = Runs(store, Versions(store))
        self._queue = QueueClient(store).queue
        self._listing = RunListing(store)

    @cached_property
    def _types(self) -> Mapping[str, ActionType]:
        """The types of actions. Their modules are imported for the first run that is shown: they need 4 MB."""
        return installed_actions().types

    async def read(self, tenant: str, run: str) -> RunView:
        """Return a run. Raises NotFound RUN_NOT_FOUND."""
        return _view(await self._load(tenant, run), self._types, self._secrets)

    async def page(
        self, tenant: str, wanted: RunFilter, cursor: str | None = None, limit: int = PAGE
    ) -> tuple[list[RunSummary], str | None]:
        """Return a page of the runs of a tenant, the newest first, and the cursor of the next one. A page may be short,
        or empty, and still have a next one.
        """
        return await self._listing.page(tenant, wanted, cursor, limit)

    async def drop(self, tenant: str, run: str) -> RunView:
        """End a run without its remaining actions. Messages that it has ordered are sent. Raises NotFound
        RUN_NOT_FOUND, Conflict RUN_OVER.
        """
        stored = await self._load(tenant, run)
        if await self._runs.drop(run) != "dropped":
            raise Conflict("RUN_OVER", "The run is over.")
        await self._wake(stored.task)  # so that the lane of its person goes on
        return await self.read(tenant, run)

    async def drive_on(self, tenant: str, run: str) -> RunView:
        """Have a run that waits driven on now. Raises NotFound RUN_NOT_FOUND, Conflict RUN_OVER, RUN_WITHOUT_TASK."""
        stored = await self._load(tenant, run)
        if stored.is_over:
            raise Conflict("RUN_OVER", "The run is over.")
        if not await self._wake(stored.task):
            raise Conflict("RUN_WITHOUT_TASK", "Its event is not in the queue any more; the run can only be dropped.")
        return await self.read(tenant, run)

    async def _wake(self, task: str) -> bool:
        """Have the task of an event attempted now. Returns whether it is in the queue."""
        try:
            view = await self._queue.inspector.peek(task)
            if view.state == "buried":
                await self._queue.kick(task)
            elif view.ended is None:
                await self._queue.wake(task)
        except (NotFound, Conflict, Invalid):
            return False
        return view.ended is None

    async def _load(self, tenant: str, run: str) -> StoredRun:
        try:
            stored = await self._runs.load(run)
        except RunGone:
            raise not_found() from None
        if stored.tenant != tenant:
            raise not_found()
        return stored


def not_found() -> NotFound:
    return NotFound("RUN_NOT_FOUND", "There is no such run.")


def _view(stored: StoredRun, types: Mapping[str, ActionType], variables: Mapping[str, str]) -> RunView:
    steps = stored.run.in_order
    numbers = {step.path: n for n, step in enumerate(steps, 1)}
    bot = stored.version.bot
    fields = [step.action.fields for step in steps]
    returned = [step.ending.returned.results for step in steps if step.ending]
    secrets = Secrets({**variables, **bot.variables}, [bot.settings, stored.event, *fields, *returned])
    return RunView(
        id=stored.id,
        person=events.person_of(stored.event),
        state="dropped" if stored.is_dropped else "over" if stored.is_over else "running",
        version=stored.version.name,
        scenarios=stored.scenarios,
        began=write_time(from_ms(stored.began)),
        ended=write_time(from_ms(stored.ended)) if stored.ended else None,
        event=secrets.hidden_fields(stored.event),
        actions=[_action(stored, step, numbers, types.get(step.action.type), secrets) for step in steps],
    )


def _action(
    stored: StoredRun, step: Step, numbers: Mapping[Path, int], kind: ActionType | None, secrets: Secrets
) -> ActionView:
    ending = step.ending
    given, send = _given(stored, step, kind)
    error = secrets.said(ending.error) if ending else ""
    return ActionView(
        n=numbers[step.path],
        node=node_id(step.scenario, step.path[-1] + 1),
        scenario=step.scenario,
        type=step.action.type,
        place=f"{step.action.place.file}:{step.action.place.line}",
        state=str(step.state),
        cause=str(step.cause) if step.cause else None,
        by=numbers[step.caused_by] if step.caused_by else None,
        why=secrets.in_text(explain(step, numbers, stored.run) if step.cause else str(sentence("waits_action_before"))),
        moved_at=write_time(from_ms(step.moved_at)) if step.moved_at else None,
        ended_at=write_time(from_ms(step.ended_at)) if step.ended_at else None,
        error=str(error),
        given=secrets.hidden_fields(given),
        send=None if send is None else secrets.hidden_fields(send),
        results=secrets.hidden_fields(ending.returned.results if ending else _question(stored, step)),
        waits_for=_waits_for(stored, step),
        translations=translations(error=error),
    )


def _given(
    stored: StoredRun, step: Step, kind: ActionType | None
) -> tuple[Mapping[str, Data], Mapping[str, Data] | None]:
    """Return the fields with which a step that was released has run, and its message; nothing of a step that its `when`
    has dropped.
    """
    if kind is None or step.cause is None or (step.state is State.DROP and step.ending is None):
        return {}, None
    prepared = prepared_of(stored, step, kind)
    if step.state is State.DROP and unmet(prepared.condition, prepared.seen):
        return {}, None
    return prepared.own, _message(stored, step, kind, prepared)


def _message(stored: StoredRun, step: Step, kind: ActionType, prepared: Prepared) -> Mapping[str, Data] | None:
    """Return the message of a step that sends one, unless it has failed before it was ordered."""
    results = step.ending.returned.results if step.ending else {}
    is_refused = step.state is State.FAILED and "delivery_id" not in results and step.path not in stored.waits
    if kind.message is None or is_refused:
        return None
    try:
        said = kind.message(stored.version.bot, step, kind.converted(prepared, UTC))
    except Refused:
        return None
    found: Mapping[str, Data] | None = msgspec.to_builtins(said, enc_hook=str)
    return found


def _question(stored: StoredRun, step: Step) -> Mapping[str, str]:
    """Return what is known of the delivery of an open question."""
    waiting = stored.waits.get(step.path)
    return waiting.results if isinstance(waiting, Asking) else {}


def _waits_for(stored: StoredRun, step: Step) -> str | None:
    if step.is_over or step.path not in stored.waits:
        return None
    waiting = stored.waits[step.path]
    if isinstance(waiting, Asking):
        return f"an answer until {from_ms(waiting.until).isoformat(timespec='seconds')}"
    return str(waiting.delivery) if waiting else SLOW
