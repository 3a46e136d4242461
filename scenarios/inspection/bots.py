"""The bot in force of a tenant, for people: its version, problems, triggers and scenarios; a scenario as a graph; a dry
run. Nothing is written.
"""

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime, tzinfo

import msgspec
from msgspec import Struct

from core.errors import NotFound
from core.model.clock import write_time
from core.model.content import Content
from core.model.json_form import JsonObject, JsonValue
from core.processes.register import BotFault, BotFaults
from core.redis.keys import KEYS
from core.redis.store import Store
from core.updates import events
from scenarios.bot import Bot, Triggers
from scenarios.bot.data import Data
from scenarios.bot.new_bot import TEACHER
from scenarios.bot.times import Schedule
from scenarios.check.dry_run import Row, dry_run
from scenarios.engine.triggers import AnsweredCommands, answered_commands, select_beside
from scenarios.execution.secrets import Secrets
from scenarios.execution.versions import ActiveVersion, Version, Versions
from scenarios.inspection.scenario_graph import ScenarioGraph, graph_view, place_text
from scenarios.sending.message import content_of
from scenarios.words import Translations, in_language, translations

LONGEST_DRY_RUN = 2.0
"""Seconds."""
_COMING = 3


class ProblemView(Struct, frozen=True):
    """A fault in a file. `severity`: error or warning. `parameters`: the names, numbers and values in the message, by
    name. `translations`: language → `message` in it, if it is known.
    """

    file: str
    line: int
    column: int
    severity: str
    code: str
    message: str
    parameters: Mapping[str, str]
    translations: Translations


class TriggerView(Struct, frozen=True):
    """A trigger of a scenario. `chats`: private or group, as the file decides. `event`: the kind of the event; `kind`
    and `key`: how it is compared, and with what. `from_chat`: the chats that are named. `continues`: lower kinds are
    tried, too. `place`: file and line.
    """

    chats: str
    event: str
    kind: str
    key: str
    scenario: str
    from_chat: Sequence[str]
    continues: bool
    place: str


class ScheduleView(Struct, frozen=True):
    """A schedule of the bot. `words`: the time as written. `target`: people, or which group or chat; null: once.
    `before`: the date variable that the time is counted back from, null for a time that recurs. `next`: its next
    moments, at most three, as they are when this is read; none with `before`.
    """

    name: str
    scenario: str
    words: str
    target: JsonValue
    before: str | None
    next: Sequence[datetime]
    place: str


class ScenarioView(Struct, frozen=True):
    """A scenario, where it is written, and how many actions it has."""

    name: str
    place: str
    actions: int


class BotView(Struct, frozen=True):
    """The bot in force. `is_good`: whether this version has no mistakes. `problems`: the first 200 of the files as they
    are now; with mistakes the last good version stays in force. `problem_count`: all. `commands`: which of the two bots
    answers each command of teachers; none if there is no dialog.
    """

    version: str
    loaded_at: str
    folder: str
    is_good: bool
    problems: Sequence[ProblemView]
    problem_count: int
    triggers: Sequence[TriggerView]
    scenarios: Sequence[ScenarioView]
    schedules: Sequence[ScheduleView]
    commands: AnsweredCommands


class ListedBot(Struct, frozen=True):
    """A bot of a tenant. `version`: in force, null if no process has loaded it. `is_good`: whether it has no mistakes.
    `problem_count`: of the files as they are now. `stopped`: what of it does not work, and why.
    """

    tenant: str
    version: str | None
    folder: str
    is_good: bool
    problem_count: int
    stopped: Sequence[BotFault]


class DryRunAction(Struct, frozen=True):
    """One action of a dry run, without secrets. `why`: what released or dropped it, and the error; `error`: that alone;
    `translations`: language → `error` in it, if it is known.
    """

    n: int
    node: str
    scenario: str
    type: str
    outcome: str
    why: str
    error: str
    given: JsonObject
    send: JsonObject | None
    results: JsonObject
    translations: Translations


class DryRun(Struct, frozen=True):
    """`started`: the scenarios that the event starts, each with the place of its trigger. `contents`: of the message of
    each action, None without one. `russian`: the warnings in Russian, in the same order.
    """

    version: str
    started: Mapping[str, str]
    actions: Sequence[DryRunAction]
    contents: Sequence[Content | None]
    warnings: Sequence[str]
    russian: Sequence[str]


class BotReader:
    """One per process."""

    def __init__(self, store: Store, secrets: Mapping[str, str] | None = None) -> None:
        """Read bots of a store. `secrets`: those of the process, by the names of their variables."""
        self._store = store
        self._secrets = secrets or {}
        self._versions = Versions(store)
        self._dry_runs = asyncio.Semaphore(1)  # each is a thread that calculates

    async def show(self, tenant: str, zone: tzinfo = UTC) -> BotView:
        """Return the bot in force. `zone`: of the tenant. Raises NotFound BOT_NOT_LOADED."""
        active, version = await self._active(tenant)
        secrets = secrets_of(version.bot, self._secrets)
        view = _view(active, version.bot, await self._beside(active), zone)
        return msgspec.convert(secrets.hidden(msgspec.to_builtins(view)), BotView)

    async def list(self, tenant: str | None) -> Sequence[ListedBot]:
        """Return the bot of a tenant, or of all with None, by tenant."""
        known = await self._store.command("SMEMBERS", KEYS["bots"].at(0)) if tenant is None else [tenant]
        entries = [await self._entry(one) for one in sorted(known)]
        return [one for one in entries if one.version or one.stopped]

    async def _entry(self, tenant: str) -> ListedBot:
        active, stopped = await self._in_force(tenant), await BotFaults(self._store).of(tenant)
        if active is None:  # no process has loaded it
            return ListedBot(tenant, None, "", False, 0, stopped)
        return ListedBot(tenant, active.version, active.folder, active.is_good, active.problem_count, stopped)

    async def graph(self, tenant: str, name: str, version: str = "") -> ScenarioGraph:
        """Return a scenario as a graph, of the bot in force, of the dialog beside it, or of an earlier version.
        Raises NotFound BOT_NOT_LOADED,
        SCENARIO_NOT_FOUND.
        """
        for found in await self._named(tenant, version):
            if scenario := found.bot.find(name):
                return graph_view(found.name, found.bot, scenario, secrets_of(found.bot, self._secrets))
        raise NotFound("SCENARIO_NOT_FOUND", f"There is no scenario {name!r} in this version of the bot.")

    async def _named(self, tenant: str, version: str) -> Sequence[Version]:
        """Return a version, or with "" that in force and the dialog of teachers beside it."""
        if version:
            found = await self._versions.get(version)
            return [found] if found else []
        active, own = await self._active(tenant)
        teacher = await self._beside(active)
        return [own, teacher] if teacher else [own]

    async def dry_run(
        self, tenant: str, event: Mapping[str, Data], fail: Collection[str], unclear: Collection[str]
    ) -> DryRun:
        """Return what the bot in force, or the dialog beside it, would do with an event: nothing is sent or written.
        Raises NotFound BOT_NOT_LOADED, Invalid EVENT_….
        """
        active, own = await self._active(tenant)
        teacher = await self._beside(active)
        stored = events.checked(event)
        events.encode(stored)
        async with self._dry_runs:
            return await asyncio.to_thread(_try, own, teacher, stored, fail, unclear, self._secrets)

    async def _active(self, tenant: str) -> tuple[ActiveVersion, Version]:
        active = await self._in_force(tenant)
        version = await self._versions.get(active.version) if active else None
        if active is None or version is None:
            raise NotFound("BOT_NOT_LOADED", "No process of the scenarios has loaded a bot of this tenant.")
        return active, version

    async def _beside(self, active: ActiveVersion) -> Version | None:
        return await self._versions.get(active.beside) if active.beside else None

    async def _in_force(self, tenant: str) -> ActiveVersion | None:
        stored = await self._store.command("GET", KEYS["active_bot"].at(0, tenant))
        return msgspec.json.decode(stored, type=ActiveVersion) if stored else None


def secrets_of(bot: Bot, known: Mapping[str, str], *values: Mapping[str, Data]) -> Secrets:
    """Return what must not be shown: what is `known`, variables in the files, what has the name of a secret there or in
    `values`.
    """
    fields = (action.fields for scenario in bot.scenarios.values() for action in scenario.actions)
    return Secrets({**known, **bot.variables}, [bot.settings, *fields, *values])


def _view(active: ActiveVersion, bot: Bot, teacher: Version | None, zone: tzinfo) -> BotView:
    scenarios = [
        ScenarioView(one.name, place_text(one.place), len(one.actions))
        for one in bot.scenarios.values()
        if not one.is_part
    ]
    triggers = [*_triggers("private", bot.triggers), *_triggers("group", bot.group_triggers)]
    for one in bot.schedules.values():
        kind = "each" if one.recurs else "before"
        triggers.append(TriggerView("", "schedule", kind, one.words, one.scenario, [], False, place_text(one.place)))
    return BotView(
        version=active.version,
        loaded_at=write_time(datetime.fromtimestamp(active.loaded_at, UTC)),
        folder=active.folder,
        is_good=active.is_good,
        problems=[ProblemView(**one.as_json()) for one in active.problems],
        problem_count=active.problem_count,
        triggers=triggers,
        scenarios=scenarios,
        schedules=[_schedule(one, zone) for one in bot.schedules.values()],
        commands=_commands(active, bot, teacher),
    )


def _commands(active: ActiveVersion, bot: Bot, teacher: Version | None) -> AnsweredCommands:
    if active.folder == str(TEACHER):
        return answered_commands(Bot(), bot)
    return answered_commands(bot, teacher.bot) if teacher else AnsweredCommands((), ())


def _schedule(one: Schedule, zone: tzinfo) -> ScheduleView:
    coming: list[datetime] = []
    while one.recurs and len(coming) < _COMING:
        coming.append(one.moment_after(coming[-1] if coming else datetime.now(UTC), zone))
    before, target = one.before or None, msgspec.to_builtins(one.target)
    return ScheduleView(one.name, one.scenario, one.words, target, before, coming, place_text(one.place))


def _triggers(chats: str, triggers: Triggers) -> Iterator[TriggerView]:
    for event in triggers.__struct_fields__:
        for kind, entries in triggers.section(event).items():
            for one in entries:
                for target in one.targets:
                    named = [str(chat) for chat in target.from_chat or ()]
                    place = place_text(one.place)
                    yield TriggerView(chats, event, kind, one.key, target.scenario, named, target.continue_, place)


def _try(
    own: Version,
    teacher: Version | None,
    event: Mapping[str, Data],
    fail: Collection[str],
    unclear: Collection[str],
    known: Mapping[str, str],
) -> DryRun:
    state = str(event.get("user_state") or "")
    is_teacher = teacher and select_beside(own.triggers, teacher.triggers, event, state)[1]
    version = teacher if teacher and is_teacher else own
    result = dry_run(version.bot, event, fail, unclear, LONGEST_DRY_RUN)
    secrets = secrets_of(version.bot, known, event, *(row.results for row in result.rows))
    actions = [_hidden(row, secrets) for row in result.rows]
    contents = [_content(row, event) for row in result.rows]
    warnings = [secrets.said(one) for one in result.warnings]
    russian = [in_language(one, "ru") for one in warnings]
    return DryRun(version.name, result.started, actions, contents, list(map(str, warnings)), russian)


def _hidden(row: Row, secrets: Secrets) -> DryRunAction:
    fields = secrets.hidden_fields(row.as_json())
    return DryRunAction(**fields, translations=translations(error=secrets.said(row.error)))


def _content(row: Row, event: Mapping[str, Data]) -> Content | None:
    return content_of(row.send, (), event, same_chat=True) if row.send else None
