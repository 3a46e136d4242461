"""Runs a bot's scenarios for one recorded event, without Redis and providers: nothing is sent or written (C-89).

Triggers, chains, placeholders, roles and the validator work as they do on the server. What providers and the store
would return are samples (`rehearse` of the actions). `fail` names what fails instead, `unclear` what has an unknown
outcome: types of actions, or single ones as the graph names them (`menu.start:2`).
"""

import math
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC

from msgspec import to_builtins

from scenarios.actions import installed_actions, own_actions
from scenarios.bot import Bot
from scenarios.bot.data import Data
from scenarios.bot.event_fields import with_derived
from scenarios.bot.model import role_refusal
from scenarios.engine import (
    ACTION_UNKNOWN,
    NOT_ALLOWED,
    Effects,
    Ending,
    Path,
    Run,
    Step,
    begin,
    end,
    failed,
    handled,
    skipped,
)
from scenarios.engine.graph import explain
from scenarios.engine.run import unknown_scenario
from scenarios.engine.triggers import SCHEDULED, CompiledTriggers, Selection, scheduled
from scenarios.placeholders.attributes import prepare
from scenarios.rehearsal import Outcomes, RehearsedStep, node_of, play
from scenarios.schema import ActionType
from scenarios.schema.conditions import unmet
from scenarios.schema.variables import defaults, scopes_of
from scenarios.sending.message import BotMessage
from scenarios.words import Text, placed, sentence


@dataclass(frozen=True, slots=True)
class Row:
    """One action of the run. `n` counts from 1 in the author's order; `node`: its id in the graph of the scenario;
    `why`: what released or dropped it, and the error; `error`: that alone.

    `given`: its fields, with placeholders replaced. `send`: the message, if it sent one. `results`: what it returned.
    """

    n: int
    node: str
    scenario: str
    type: str
    outcome: str
    why: str
    error: Text
    given: Mapping[str, Data]
    send: BotMessage | None
    results: Mapping[str, Data]

    def as_json(self) -> dict[str, Data]:
        return {**to_builtins(self, enc_hook=str), "error": str(self.error)}


@dataclass(slots=True)
class Result:
    """The scenarios that the event starts, each with the place of its trigger, "" for a button that names it; the rows
    of the actions; warnings: no trigger, broken patterns, placeholders, the loop guard, the time limit.
    """

    started: Mapping[str, str] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    warnings: list[Text] = field(default_factory=list)


def dry_run(
    bot: Bot,
    event: Mapping[str, Data],
    fail: Collection[str] = (),
    unclear: Collection[str] = (),
    seconds: float = math.inf,
) -> Result:
    """Return the actions that this event starts, each with its outcome. The person's state is `user_state` of the
    event. No action begins later than `seconds` after the first.
    """
    run = _DryRun(bot, event, Outcomes(fail, unclear))
    selection, warnings = _select(bot, run.event, str(event.get("user_state") or ""))
    run.start(selection.scenarios, seconds)
    started = dict(zip(selection.scenarios, selection.places, strict=True))
    return Result(started, list(_rows_of(run)), [*warnings, *run.warnings])


def _select(bot: Bot, event: Mapping[str, Data], state: str) -> tuple[Selection, list[Text]]:
    """Return the scenarios of the triggers, and warnings. A name without a scenario is a warning (C-35)."""
    triggers = CompiledTriggers(bot)
    if event.get("kind") == SCHEDULED:
        found = scheduled(bot, event)
        return Selection(found, ("",) * len(found)), []
    selection = triggers.select(event, state)
    missing = [unknown_scenario(bot, name) for name in selection.scenarios if bot.find(name) is None]
    return selection, [*triggers.complaints, *selection.warnings, *missing]


class _DryRun:
    """One run. `given`: the fields of each action, with placeholders replaced; `sent`: its message."""

    def __init__(self, bot: Bot, event: Mapping[str, Data], outcomes: Outcomes) -> None:
        self.event: Mapping[str, Data] = with_derived({**event, **_variables(bot, event)}, bot.language)
        self.run = Run()
        self.given: dict[Path, Mapping[str, Data]] = {}
        self.sent: dict[Path, BotMessage] = {}
        self.warnings: list[Text] = []
        self._bot = bot
        self._zone = bot.zone(UTC)
        self._outcomes = outcomes
        self._types = installed_actions().types
        self._ready: list[Path] = []

    def start(self, scenarios: Iterable[str], seconds: float) -> None:
        """Play these scenarios until all actions have ended or wait. No action begins later than `seconds` after the
        first.
        """
        found = [scenario for name in scenarios if (scenario := self._bot.find(name))]
        self.run, effects = begin(found, language=str(self.event.get("language") or ""))
        self._note(effects)
        ends = time.monotonic() + seconds
        while self._ready and time.monotonic() < ends:
            path = self._ready.pop(0)
            if (ending := self._execute(self.run.steps[path])) is not None:
                self._record(path, ending)
        if self._ready:
            self.warnings.append(sentence("dry_run_ends_after", seconds=f"{seconds:.0f}"))

    def _record(self, path: Path, ending: Ending) -> None:
        """Note the end of an action, and what it releases."""
        self.run, effects = end(self.run, path, handled(ending, self.run.steps[path].action, self._bot.scenarios))
        self._note(effects)

    def _note(self, effects: Effects) -> None:
        self.warnings += effects.complaints
        self._ready = sorted([*self._ready, *effects.released])

    def _execute(self, step: Step) -> Ending | None:
        """Return the end of an action; None if it waits."""
        kind = self._types.get(step.action.type)
        if kind is None:
            return failed(ACTION_UNKNOWN, sentence("no_action", name=step.action.type))
        action = self._bot.action(step.scenario, step.path[-1], step.action, step.language(self.event))
        settings = kind.section(self._bot.settings)
        prepared = prepare(kind.read(action), settings, step.values, self.event, self._zone)
        self.given[step.path] = prepared.own
        self.warnings += [placed(step.scenario, warning) for warning in prepared.warnings]
        if error := self._obstacle(step, kind):
            return failed(NOT_ALLOWED, error)
        if reason := unmet(prepared.condition, prepared.seen):
            return replace(skipped(reason), returned=prepared.returned)
        if (ending := self._outcomes.of(step)) is None:
            ending = self._play(RehearsedStep(self._bot, kind, step, self.event, prepared, zone=self._zone))
        return ending and replace(ending, returned=prepared.returned.and_then(ending.returned))

    def _play(self, step: RehearsedStep) -> Ending | None:
        if not step.kind.rehearse and step.kind.name not in own_actions():
            self.warnings.append(sentence("installed_package_did_not", name=step.kind.name))
        ending = play(step)
        self.warnings += step.warnings
        if step.sent:
            self.sent[step.step.path] = step.sent
        return ending

    def _obstacle(self, step: Step, kind: ActionType) -> Text:
        """Return why the action cannot run; empty if it can."""
        settings = kind.section(self._bot.settings)
        if settings.get("enabled") is False:
            return sentence("settings_yaml_switches_action", name=step.action.type)
        return role_refusal(self._bot.roles, {**settings, **kind.read(step.action).fields}, self.event.get("user_id"))


def _variables(bot: Bot, event: Mapping[str, Data]) -> dict[str, dict[str, Data]]:
    """Return what actions see of the declared variables: what the event has of them, otherwise their defaults."""
    found = {}
    for scope in scopes_of(bot.declared):
        given = event.get(scope)
        found[scope] = {**defaults(bot.declared, scope), **(given if isinstance(given, Mapping) else {})}
    return found


def _rows_of(dry: _DryRun) -> Iterable[Row]:
    """Return what has become of each action."""
    run = dry.run
    numbers = {step.path: n for n, step in enumerate(run.in_order, 1)}
    for step in run.in_order:
        why = explain(step, numbers, run) if step.cause else sentence("waits_action_before")
        why = sentence("waits_answer") if step.path in dry.sent and not step.is_over else why
        place = numbers[step.path], node_of(step), step.scenario, step.action.type
        results = step.ending.returned.results if step.ending else {}
        given, send = dry.given.get(step.path, {}), dry.sent.get(step.path)
        error = step.ending.error if step.ending else ""
        yield Row(*place, str(step.state), str(why), error, given, send, results)
