"""Actions that decide which scenario goes on (C-33, C-34, C-58 to C-62, C-94, C-98)."""

import json
from collections.abc import Sequence
from datetime import tzinfo
from typing import Annotated

from core.errors import Invalid
from scenarios.bot.data import Data
from scenarios.context import Context
from scenarios.engine import Ending, failed, skipped
from scenarios.engine.run import ITEM, MOST_ITEMS, for_each, splice
from scenarios.placeholders.values import is_list
from scenarios.rehearsal import RehearsedStep
from scenarios.schema import ActionType, Attributes, Own, conversion, types
from scenarios.schema.attributes import Anything, Count, Elements, Fields, Text, Whole
from scenarios.schema.conditions import Cases, chosen
from scenarios.schema.conversion import text
from scenarios.schema.rules import MODES, RULES, VALIDATOR_RULES, Rules, ending
from scenarios.stores import step_results
from scenarios.telegram import is_member
from scenarios.words import sentence


def _scenario_names(value: Data, name: str, zone: tzinfo) -> str | tuple[str, ...] | None:
    if isinstance(value, list):
        return tuple(map(str, value)) or None
    return str(value) if value else None


Names = Annotated[str | tuple[str, ...], types.SCENARIOS, _scenario_names]


class ScenarioAttributes(Attributes, frozen=True):
    value: Annotated[Names, Own("The scenario: `file.name`, `folder.file.name` or the bare name.")] = ()
    name: Annotated[Names, Own(alias_of="value")] = ()
    with_: Annotated[Fields, Own("Its parameters, name → value; its actions see them.", may_be_empty=True)] = {}


async def execute_scenario(context: Context, written: ScenarioAttributes) -> Ending:
    return splice(context.bot, context.step, written.value or written.name, written.with_)


def rehearse_scenario(step: RehearsedStep, written: ScenarioAttributes) -> Ending:
    ending = splice(step.bot, step.step, written.value or written.name, written.with_)
    step.warnings += [ending.error] if ending.error else []
    return ending


SCENARIO = ActionType(
    name="scenario",
    help="Runs another scenario in this place; the next action follows its last one. Several run side by side, and the"
    " next action does not wait for them.",
    attributes=ScenarioAttributes,
    placeholder=True,
    one_of=("name", "value"),
    execute=execute_scenario,
    rehearse=rehearse_scenario,
)


class BranchAttributes(Attributes, frozen=True):
    cases: Annotated[Cases, Own("The cases, `{when, scenario}`, in the order in which they are tried.")] = ()
    otherwise: Annotated[Text, Own("The scenario if no case applies.")] = ""


async def execute_branch(context: Context, written: BranchAttributes) -> Ending:
    return _branch(context, written)


def rehearse_branch(step: RehearsedStep, written: BranchAttributes) -> Ending:
    return _branch(step, written)


def _branch(on: Context | RehearsedStep, written: BranchAttributes) -> Ending:
    name = chosen(written.cases, on.prepared.seen) or written.otherwise
    return splice(on.bot, on.step, name, {}) if name else skipped(sentence("no_case_applies_no"))


BRANCH = ActionType(
    name="branch",
    help="Runs the scenario of the first case whose condition holds in this place; the next action follows its last"
    " one. If none holds, and there is no `otherwise`, the action ends as `drop`.",
    attributes=BranchAttributes,
    one_of=("cases",),
    outcomes=("completed", "failed", "drop"),
    execute=execute_branch,
    rehearse=rehearse_branch,
)


class ForEachAttributes(Attributes, frozen=True):
    items: Annotated[Anything, Own("The list; a text is split at commas.", may_be_empty=True)] = None
    group: Annotated[Text, Own("A group of the directory, whose people are the items, with `id` and `name`.")] = ""
    scenario: Annotated[str, types.SCENARIOS, text, Own("The scenario, whose actions see the item as `{item}`.")] = ""
    as_: Annotated[Text, Own("Another name for the item.")] = ITEM
    with_: Annotated[Fields, Own("Further parameters of the scenario.", may_be_empty=True)] = {}
    collect: Annotated[
        Elements,
        Own("Which results of each run the next action gets as `results`; it waits until all runs are over."),
    ] = ()
    at_once: Annotated[
        Whole, Own("How many runs there are at the same time; the others begin as these end. The next action waits.")
    ] = None
    limit: Annotated[Count, Own("How many items there may be; with more the action fails.", default=MOST_ITEMS)] = None


async def execute_for_each(context: Context, written: ForEachAttributes) -> Ending:
    """Splice in the scenario for each item. Raises Refused, for example NotFound GROUP_NOT_FOUND."""
    items = await _people(context, written.group) if written.group else items_of(written.items)
    return _spliced(context, written, items)


def rehearse_for_each(step: RehearsedStep, written: ForEachAttributes) -> Ending:
    """A group has one person."""
    items: Data = [{"id": 1, "name": "Anna"}] if written.group else written.items
    return _spliced(step, written, items_of(items))


def _spliced(on: Context | RehearsedStep, written: ForEachAttributes, items: Sequence[Data]) -> Ending:
    most = min(written.limit or MOST_ITEMS, MOST_ITEMS)
    if len(items) > most:
        return failed("TOO_MANY_ITEMS", sentence("items_most_allowed", count=len(items), most=most))
    if written.at_once is not None and written.at_once < 1:
        raise Invalid("FIELD_INVALID", sentence("at_once_from_one"), "at_once")
    waits = bool(written.collect or written.at_once)
    about = written.scenario, items, written.as_, written.with_
    return for_each(on.bot, on.step, *about, written.collect if waits else None, written.at_once or 0)


def items_of(written: Data) -> Sequence[Data]:
    """Return the elements of a list; a text is split at commas."""
    if is_list(written):
        return list(written)
    return [one.strip() for one in str(written or "").split(",") if one.strip()]


async def _people(context: Context, group: str) -> Sequence[Data]:
    """Return the people of a group, the same after a crash although the group may have changed."""
    if known := await step_results.recall(context):
        found: Sequence[Data] = json.loads(known)
        return found
    context.require("read")
    directory, tenant = context.services.core.directory, context.services.tenant
    expansion = await directory.expander.expand(tenant, [group], [])
    people = [{"id": one.user.id, "name": one.user.name} for one in expansion.members]
    kept: Sequence[Data] = json.loads(await step_results.remember(context, json.dumps(people)))
    return kept


FOR_EACH = ActionType(
    name="for_each",
    help="Runs a scenario once for each item of a list, or each person of a group of the directory, side by side. The"
    " next action does not wait for them, unless it collects their results.",
    attributes=ForEachAttributes,
    placeholder=True,
    one_of=("items", "group"),
    returns={
        "count": "how many items there were",
        "results": "with `collect`: of each run, in the order of the items, its item, `number`, `outcome` (`failed` if"
        " one of its actions failed) and what was asked for",
    },
    returns_with={"results": "collect"},
    execute=execute_for_each,
    rehearse=rehearse_for_each,
)


class ValidatorAttributes(Attributes, frozen=True):
    rules: Annotated[
        Rules,
        VALIDATOR_RULES,
        conversion.mapping,
        Own(
            f"The rules of each field: {', '.join(RULES)}. `is_member` has its chats as `chat` (also as `value`), by"
            f" default that of the event, and `mode` ({' or '.join(MODES)}) and `target_user`."
        ),
    ] = {}


async def execute_validator(context: Context, written: ValidatorAttributes) -> Ending:
    return ending(context.prepared, written.rules, await is_member(context, written.rules))


def rehearse_validator(step: RehearsedStep, written: ValidatorAttributes) -> Ending:
    """Everybody is a member."""
    return ending(step.prepared, written.rules, lambda rule: True)


VALIDATOR = ActionType(
    name="validator",
    help="Completes if all rules hold, otherwise fails. Further fields are variables for later actions.",
    attributes=ValidatorAttributes,
    other_fields=True,
    outcomes=("completed", "failed", "drop"),
    returns={"(its other fields)": "their values"},
    execute=execute_validator,
    rehearse=rehearse_validator,
)
