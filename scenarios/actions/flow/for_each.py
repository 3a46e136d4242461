"""Splices a scenario in for each item of a list, or each person of a group (C-98)."""

import json
from collections.abc import Sequence
from typing import Annotated

from core.errors import Invalid
from scenarios.bot.data import Data
from scenarios.context import Context
from scenarios.engine import Ending
from scenarios.engine.results import failed
from scenarios.engine.splicing import ITEM, MOST_ITEMS, for_each
from scenarios.placeholders.values import is_list
from scenarios.rehearsal import RehearsedStep
from scenarios.schema import ActionType, Attributes, Own, types
from scenarios.schema.attributes import Anything, Count, Elements, Fields, Text, Whole
from scenarios.schema.conversion import text
from scenarios.stores import step_results
from scenarios.words import sentence


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


async def execute(context: Context, written: ForEachAttributes) -> Ending:
    """Splice in the scenario for each item. Raises Refused, for example NotFound GROUP_NOT_FOUND."""
    items = await _people(context, written.group) if written.group else items_of(written.items)
    return _spliced(context, written, items)


def rehearse(step: RehearsedStep, written: ForEachAttributes) -> Ending:
    """A group has one person."""
    items: Data = [{"id": 1, "name": "Anna"}] if written.group else written.items
    return _spliced(step, written, items_of(items))


def _spliced(on: Context | RehearsedStep, written: ForEachAttributes, items: Sequence[Data]) -> Ending:
    most = min(written.limit or MOST_ITEMS, MOST_ITEMS)
    if len(items) > most:
        return failed(sentence("items_most_allowed", count=len(items), most=most))
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


ACTION = ActionType(
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
    execute=execute,
    rehearse=rehearse,
)
