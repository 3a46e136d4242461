"""Executes one step of a run: its attributes, whether it may run, and what its action does. A slow action has a task
of its own tube, so that it delays no other action; few run at once (C-76).

    put ─▶ tube of the action type ─▶ handle: execute, record the ending ─▶ wake the run

What an action raises makes it fail with `error`; only an outage of the store is passed on, so that the step is tried
again.
"""

import logging
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta, tzinfo
from pathlib import Path as FolderPath

import msgspec
from msgspec import Struct

from core.errors import Refused, StoreError
from core.model.clock import Backoff
from core.queue import Attempt, NewTask, QueueClient, Result, Tube
from providers.models import AiError
from scenarios.context import Asking, Context, ScenarioServices, Waiting
from scenarios.engine import ACTION_UNKNOWN, NOT_ALLOWED, Ending, Path, Run, State, Step, failed, skipped
from scenarios.execution.parking import Parking
from scenarios.execution.runs import RunGone, Runs, StoredRun, path_text
from scenarios.execution.secrets import Secrets
from scenarios.placeholders.attributes import Prepared, prepare
from scenarios.schema import ActionType
from scenarios.schema.conditions import unmet
from scenarios.schema.declaration import Interaction
from scenarios.telegram import denial
from scenarios.words import Text, placed, sentence

log = logging.getLogger(__name__)


class StepExecutor:
    """One per process. `types`: the action types by name. `folder`: that of the bot's files. `secrets`: those of the
    process, which no error may show.
    """

    def __init__(
        self,
        services: ScenarioServices,
        types: Mapping[str, ActionType],
        folder: FolderPath,
        secrets: Mapping[str, str] | None = None,
    ) -> None:
        self._secrets = Secrets(secrets or {})
        self._services = services
        self._types = types
        self._folder = folder

    def tube_of(self, step: Step) -> str:
        """Return the tube of a slow action; "" for an action that runs in place."""
        kind = self._types.get(step.action.type)
        return kind.tube if kind else ""

    def interaction_of(self, step: Step) -> Interaction | None:
        """Return how a waiting step takes inputs of a person; None for a question with one answer."""
        kind = self._types.get(step.action.type)
        return kind.interaction if kind else None

    async def execute(self, stored: StoredRun, step: Step) -> Ending | Waiting | Asking:
        """Run a step; return its end, or what it waits for. Raises StoreError."""
        kind = self._types.get(step.action.type)
        if kind is None or kind.execute is None:
            return failed(ACTION_UNKNOWN, sentence("no_action", name=step.action.type))
        context = self.context(stored, step)
        try:
            if reason := await self._obstacle(context):
                return self.finished(stored, step, _refused(stored, context, failed(NOT_ALLOWED, reason)))
            if reason := unmet(context.prepared.condition, context.prepared.seen):
                return self.finished(stored, step, skipped(reason))
            found = await kind.execute(context, kind.converted(context.prepared, context.services.timezone))
        except Refused as refusal:
            found = _refused(stored, context, self._without_secrets(kind.refused(refusal)))
        except Exception as error:  # whatever an action raises is its failure
            if isinstance(error, StoreError):
                raise
            found = self._without_secrets(_failure(context, error))
        return found if isinstance(found, Waiting | Asking) else self.finished(stored, step, found)

    def _without_secrets(self, ending: Ending) -> Ending:
        return replace(ending, error=self._secrets.said(ending.error))

    def finished(self, stored: StoredRun, step: Step, ending: Ending) -> Ending:
        """Return the ending with the attributes that become variables of later actions (C-58)."""
        returned = self.context(stored, step, warns=False).prepared.returned
        return replace(ending, returned=returned.and_then(ending.returned))

    def context(self, stored: StoredRun, step: Step, *, warns: bool = True) -> Context:
        """Return what the action of a step gets."""
        bot = stored.version.bot
        services = replace(self._services, timezone=bot.zone(self._services.timezone))
        prepared = prepared_of(stored, step, self._types[step.action.type], services.timezone)
        context = Context(services, bot, self._folder, stored.id, step, stored.event, prepared)
        for warning in prepared.warnings if warns else ():
            context.warn(warning)
        return context

    async def _obstacle(self, context: Context) -> Text:
        """Return why the action may not run; empty if it may."""
        kind = self._types[context.step.action.type]
        settings = kind.section(context.bot.settings)
        if settings.get("enabled") is False:
            return sentence("settings_yaml_switches_action", name=kind.name)
        return await denial(context, {**settings, **kind.read(context.step.action).fields})


def prepared_of(stored: StoredRun, step: Step, kind: ActionType, zone: tzinfo | None = None) -> Prepared:
    """Return what a step runs with, or has run with: it depends only on the run."""
    bot, event = stored.version.bot, stored.event
    action = bot.action(step.scenario, step.path[-1], step.action, step.language(event))
    return prepare(kind.read(action), kind.section(bot.settings), step.values, event, zone)


def _refused(stored: StoredRun, context: Context, ending: Ending) -> Ending:
    """Return the ending, which is logged if no action of the author's is for it: the person sees nothing then."""
    if not (context.step.action.on_failure or _is_followed(stored.run, context.step, ending.state)):
        context.warn(sentence("refused_and_not_handled", action=context.step.action.type, why=ending.error))
    return ending


def _is_followed(run: Run, step: Step, state: State) -> bool:
    """Return whether an action is for this end of a step, also one behind actions that are dropped by it."""
    followers = [run.steps[path] for path in run.followers.get(step.path, ())]
    return any(
        State.COMPLETED not in one.action.chain if state in one.action.chain else _is_followed(run, one, State.DROP)
        for one in followers
        if one.action.chain
    )


def _failure(context: Context, error: Exception) -> Ending:
    """Return the ending of an action that raised. A fault of a program is logged with its place."""
    place = context.step.action.place
    if isinstance(error, AiError):
        log.warning("%s, line %d, run %s: %s: %s", place.file, place.line, context.run, error.code, error)
        return failed(error.code, placed(error.code, error.said))
    log.error("%s, line %d, run %s: the action raised", place.file, place.line, context.run, exc_info=error)
    return failed("ACTION_RAISED", f"{type(error).__name__}: {error}")


CONCURRENCY = 10
"""Actions of one tube that a process executes at once."""

SOURCE = "scenarios.slow"

_ATTEMPTS = 100
"""Only an outage of the store or the death of a process takes an attempt: what an action raises is an outcome."""
_BACKOFF = Backoff(timedelta(milliseconds=500), timedelta(seconds=20))


class SlowStep(Struct, frozen=True):
    """The body of a task: one step of a run."""

    run: str
    path: Path


def slow_tubes(types: Mapping[str, ActionType]) -> list[Tube]:
    names = sorted({kind.tube for kind in types.values() if kind.tube})
    return [Tube(name, attempts=_ATTEMPTS, backoff=_BACKOFF) for name in names]


class SlowSteps:
    """The slow steps of one tenant's bot; one per process."""

    def __init__(self, queue: QueueClient, runs: Runs, executor: StepExecutor, parking: Parking) -> None:
        self._queue = queue
        self._runs = runs
        self._executor = executor
        self._parking = parking

    async def put(self, stored: StoredRun, step: Step) -> None:
        """Have a step executed; a repeat changes nothing."""
        body = msgspec.json.encode(SlowStep(stored.id, step.path)).decode()
        task = NewTask(body, stored.tenant, tags=(f"run:{stored.id}",))
        tube = self._executor.tube_of(step)
        await self._queue.queue.put_once(tube, task, source=SOURCE, name=f"{stored.id} {path_text(step.path)}")

    async def handle(self, attempt: Attempt) -> Result:
        """Execute a step and wake its run. Raises StoreError."""
        slow = msgspec.json.decode(attempt.body, type=SlowStep)
        try:
            stored = await self._runs.load(slow.run)
            step = stored.run.steps[slow.path]
            if not (stored.is_over or step.is_over):
                found = await self._executor.execute(stored, step)
                if isinstance(found, Waiting):
                    await self._parking.park(stored, {slow.path: found})
                elif isinstance(found, Ending):
                    await self._runs.record(stored, slow.path, found)
        except RunGone:
            return None
        await self._parking.wake(stored.task)
        return None
