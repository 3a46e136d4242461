"""Runs a bot's scenarios for one recorded event, without Redis and providers: nothing is sent or written (C-89).

Triggers, chains, placeholders, roles and the validator work as they do on the server. What providers and the store
would return are samples (`rehearse` of the actions). `fail` names what fails instead, `unclear` what has an unknown
outcome: types of actions, or single ones as the graph names them (`menu.start:2`).
"""

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC

from msgspec import to_builtins

from scenarios.bot import Bot
from scenarios.bot.data import Data
from scenarios.check.rehearsal.rehearsal import Outcomes, Rehearsal, node_of
from scenarios.engine.reasons import explain
from scenarios.engine.splicing import unknown_scenario
from scenarios.engine.triggers import SCHEDULED, CompiledTriggers, Selection, scheduled
from scenarios.rehearsal.memory import Memory
from scenarios.rehearsal.step import FIRST_MOMENT
from scenarios.sending.message import BotMessage
from scenarios.words import Text, sentence


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
    rehearsal = Rehearsal(bot, event, Memory(FIRST_MOMENT, bot.zone(UTC)), Outcomes(fail, unclear))
    selection, warnings = select(bot, rehearsal.event, str(event.get("user_state") or ""))
    rehearsal.start(selection.scenarios, seconds)
    started = dict(zip(selection.scenarios, selection.places, strict=True))
    return Result(started, list(rows_of(rehearsal)), [*warnings, *rehearsal.warnings])


def select(bot: Bot, event: Mapping[str, Data], state: str) -> tuple[Selection, list[Text]]:
    """Return the scenarios of the triggers, and warnings. A name without a scenario is a warning (C-35)."""
    triggers = CompiledTriggers(bot)
    if event.get("kind") == SCHEDULED:
        found = scheduled(bot, event)
        return Selection(found, ("",) * len(found)), []
    selection = triggers.select(event, state)
    missing = [unknown_scenario(bot, name) for name in selection.scenarios if bot.find(name) is None]
    return selection, [*triggers.complaints, *selection.warnings, *missing]


def rows_of(rehearsal: Rehearsal) -> Iterable[Row]:
    """Return what has become of each action."""
    run = rehearsal.run
    numbers = {step.path: n for n, step in enumerate(run.in_order, 1)}
    for step in run.in_order:
        why = explain(step, numbers, run) if step.cause else sentence("waits_action_before")
        why = sentence("waits_answer") if step.path in rehearsal.sent and not step.is_over else why
        place = numbers[step.path], node_of(step), step.scenario, step.action.type
        results = step.ending.returned.results if step.ending else {}
        given, send = rehearsal.given.get(step.path, {}), rehearsal.sent.get(step.path)
        error = step.ending.error if step.ending else ""
        yield Row(*place, str(step.state), str(why), error, given, send, results)
