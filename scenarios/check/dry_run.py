"""Runs a bot's scenarios for one recorded event, without Redis and providers: nothing is sent or written (C-89).

Triggers, chains, placeholders, roles and the validator work as they do on the server. What providers and the store
would return are samples (`scenarios.check.samples`). `fail` names what fails instead, `unclear` what has an unknown
outcome: types of actions, or single ones as the graph names them (`menu.start:2`).
"""

import math
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC
from typing import Any

from scenarios.actions import installed_actions
from scenarios.bot import Bot
from scenarios.bot.access import refusal
from scenarios.bot.event_fields import with_derived
from scenarios.check.samples import Sampled, ending_of
from scenarios.engine import Effects, Ending, Path, Run, Step, begin, end
from scenarios.engine.graph import node_id
from scenarios.engine.reasons import explain
from scenarios.engine.results import failed, skipped, unknown
from scenarios.engine.splicing import branch, splice, unknown_scenario
from scenarios.engine.triggers import CompiledTriggers
from scenarios.placeholders.attributes import Prepared, prepare
from scenarios.schema import ActionType, validator
from scenarios.schema.conditions import chosen, unmet
from scenarios.schema.variables import VariableFault, changes_of, defaults, ending_of_changes, scopes_of
from scenarios.sending.content import refusal_of
from scenarios.sending.message import message


@dataclass(frozen=True, slots=True)
class Row:
    """One action of the run. `n` counts from 1 in the author's order; `node`: its id in the graph of the scenario;
    `why`: what released or dropped it, and an error.

    `given`: its fields, with placeholders replaced. `send`: the message, if it sent one. `results`: what it returned.
    """

    n: int
    node: str
    scenario: str
    type: str
    outcome: str
    why: str
    given: Mapping[str, Any]
    send: Mapping[str, Any] | None
    results: Mapping[str, Any]


@dataclass(slots=True)
class Result:
    """The scenarios that the event starts, each with the place of its trigger, "" for a button that names it; the rows
    of the actions; warnings: no trigger, broken patterns, placeholders, the loop guard, the time limit.
    """

    started: Mapping[str, str] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def dry_run(
    bot: Bot,
    event: Mapping[str, Any],
    fail: Collection[str] = (),
    unclear: Collection[str] = (),
    seconds: float = math.inf,
) -> Result:
    """Return the actions that this event starts, each with its outcome. The person's state is `user_state` of the
    event. No action begins later than `seconds` after the first.
    """
    return _DryRun(bot, event, fail, unclear).result(seconds)


class _DryRun:
    def __init__(self, bot: Bot, event: Mapping[str, Any], fail: Collection[str], unclear: Collection[str]) -> None:
        self._bot = bot
        self._event = with_derived({**event, **seen_variables(bot, event)})
        self._fail = fail
        self._unclear = unclear
        self._types = installed_actions().types
        self._given: dict[Path, Mapping[str, Any]] = {}
        self._sent: dict[Path, Mapping[str, Any]] = {}
        self._warnings: list[str] = []
        self._started: Mapping[str, str] = {}

    def result(self, seconds: float) -> Result:
        ends = time.monotonic() + seconds
        run, effects = begin([scenario for name in self._chosen() if (scenario := self._bot.find(name))])
        ready = self._noted(effects)
        while ready and time.monotonic() < ends:
            path = ready.pop(0)
            run, effects = end(run, path, self._execute(run.steps[path]))
            ready = sorted([*ready, *self._noted(effects)])
        if ready:
            self._warnings.append(f"the dry run ends after {seconds:.0f} s; the other actions were not tried")
        return Result(self._started, list(self._rows(run)), self._warnings)

    def _chosen(self) -> Iterable[str]:
        """Return the scenarios of the triggers. A name without a scenario is a warning (C-35)."""
        triggers = CompiledTriggers(self._bot)
        selection = triggers.select(self._event, str(self._event.get("user_state") or ""))
        self._warnings += [*triggers.complaints, *selection.warnings]
        self._warnings += [
            unknown_scenario(self._bot, name) for name in selection.scenarios if self._bot.find(name) is None
        ]
        self._started = dict(zip(selection.scenarios, selection.places, strict=True))
        return selection.scenarios

    def _noted(self, effects: Effects) -> list[Path]:
        self._warnings += effects.complaints
        return list(effects.released)

    def _execute(self, step: Step) -> Ending:
        kind = self._types.get(step.action.type)
        if kind is None:
            return failed(f"there is no action {step.action.type!r}")
        section = self._bot.settings.get(kind.name)
        settings = section if isinstance(section, Mapping) else {}
        prepared = prepare(step.action, {"placeholder": kind.placeholder, **settings}, step.values, self._event)
        self._given[step.path] = prepared.own
        self._warnings += [f"{step.scenario}: {warning}" for warning in prepared.warnings]
        if error := self._obstacle(step, settings):
            return failed(error)
        if reason := unmet(prepared.condition, prepared.seen):
            return replace(skipped(reason), returned=prepared.returned)
        if _is_named(step, self._unclear):
            return unknown("its outcome is set to unknown")
        ending = EXECUTORS.get(kind.name, _DryRun.succeed)(self, step, prepared, kind)
        return replace(ending, returned=prepared.returned.and_then(ending.returned))

    def _obstacle(self, step: Step, settings: Mapping[str, Any]) -> str:
        """Return why the action cannot run; empty if it can."""
        if _is_named(step, self._fail):
            return "its outcome is set to failed"
        if settings.get("enabled") is False:
            return f"settings.yaml switches the action {step.action.type} off"
        return refusal(self._bot.roles, {**settings, **step.action.fields}, self._event.get("user_id"))

    def send(self, step: Step, prepared: Prepared, kind: ActionType) -> Ending:
        content = message(prepared.seen)
        if content is None:
            return failed("there is nothing to send: no text and no attachment")
        if refused := refusal_of(content):
            return failed(f"{refused.code}: {refused.detail}")
        self._sent[step.path] = content
        return self.succeed(step, prepared, kind)

    def validator(self, step: Step, prepared: Prepared, kind: ActionType) -> Ending:
        return validator.ending(prepared, lambda rule: True)

    def scenario(self, step: Step, prepared: Prepared, kind: ActionType) -> Ending:
        ending = splice(self._bot, step, prepared.own)
        self._warnings += [ending.error] if ending.error else []
        return ending

    def branch(self, step: Step, prepared: Prepared, kind: ActionType) -> Ending:
        return branch(self._bot, step, chosen(prepared.own, prepared.seen))

    def set(self, step: Step, prepared: Prepared, kind: ActionType) -> Ending:
        try:
            changes = changes_of(prepared.own.get("variables"), self._bot.declared, UTC)
        except VariableFault as fault:
            return failed(str(fault))
        return ending_of_changes(changes, prepared.seen, {})

    def succeed(self, step: Step, prepared: Prepared, kind: ActionType) -> Ending:
        return ending_of(Sampled(kind, prepared, step.action.fields, self._event))

    def _rows(self, run: Run) -> Iterable[Row]:
        numbers = {step.path: n for n, step in enumerate(run.in_order, 1)}
        for step in run.in_order:
            why = explain(step, numbers, run) if step.cause else "it waits for the action before it"
            place = numbers[step.path], _node(step), step.scenario, step.action.type
            results = step.ending.returned.results if step.ending else {}
            given, send = self._given.get(step.path, {}), self._sent.get(step.path)
            yield Row(*place, str(step.state), why, given, send, results)


def seen_variables(bot: Bot, event: Mapping[str, Any]) -> dict[str, Any]:
    """Return the variables that the bot declares: those of the event, such as `"person": {"age": 20}`, or else their
    defaults.
    """
    given = {scope: event.get(scope) for scope in scopes_of(bot.declared)}
    return {
        scope: {**defaults(bot.declared, scope), **(value if isinstance(value, Mapping) else {})}
        for scope, value in given.items()
    }


def _node(step: Step) -> str:
    return node_id(step.scenario, step.path[-1] + 1)


def _is_named(step: Step, names: Collection[str]) -> bool:
    return step.action.type in names or _node(step) in names


EXECUTORS: Mapping[str, Callable[[_DryRun, Step, Prepared, ActionType], Ending]] = {
    "send": _DryRun.send,
    "validator": _DryRun.validator,
    "scenario": _DryRun.scenario,
    "branch": _DryRun.branch,
    "set": _DryRun.set,
}
"""What runs for real, by type."""
