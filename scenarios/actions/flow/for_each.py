"""Splices a scenario in for each item of a list, or each person of a group (C-98)."""

import json
from collections.abc import Sequence
from typing import Any

from scenarios.context import Context
from scenarios.context.arguments import count_of, text_of
from scenarios.engine import Ending
from scenarios.engine.results import failed
from scenarios.engine.splicing import ITEM, MOST_ITEMS, for_each
from scenarios.placeholders.values import is_list
from scenarios.schema import ActionType, Field, types
from scenarios.stores import step_results


async def execute(context: Context) -> Ending:
    """Splice in the scenario for each item. Raises Refused, for example NotFound GROUP_NOT_FOUND."""
    own = context.prepared.own
    group = text_of(own, "group")
    items = await _people(context, group) if group else items_of(own.get("items"))
    most = min(count_of(own, "limit") or MOST_ITEMS, MOST_ITEMS)
    if len(items) > most:
        return failed(f"there are {len(items)} items, at most {most} are allowed")
    return for_each(context.bot, context.step, own, items)


def items_of(written: Any) -> Sequence[Any]:
    """Return the elements of a list; a text is split at commas."""
    if is_list(written):
        return list(written)
    return [one.strip() for one in str(written or "").split(",") if one.strip()]


async def _people(context: Context, group: str) -> Sequence[Any]:
    """Return the people of a group, the same after a crash although the group may have changed."""
    if known := await step_results.recall(context):
        found: Sequence[Any] = json.loads(known)
        return found
    context.require("read")
    directory, tenant = context.services.core.directory, context.services.tenant
    expansion = await directory.expander.expand(tenant, [group], [])
    people = [{"id": one.user.id, "name": one.user.name} for one in expansion.members]
    kept: Sequence[Any] = json.loads(await step_results.remember(context, json.dumps(people)))
    return kept


ACTION = ActionType(
    name="for_each",
    help="Runs a scenario once for each item of a list, or each person of a group of the directory, side by side; the"
    " next action does not wait for them.",
    placeholder=True,
    one_of=("items", "group"),
    fields=(
        Field("items", types.ANY, "The list; a text is split at commas."),
        Field("group", types.TEXT, "A group of the directory, whose people are the items, with `id` and `name`."),
        Field("scenario", types.SCENARIOS, "The scenario, whose actions see the item as `{item}`."),
        Field("as", types.TEXT, "Another name for the item.", default=ITEM),
        Field("with", types.MAPPING, "Further parameters of the scenario."),
        Field("limit", types.WHOLE, "How many items there may be; with more the action fails.", default=MOST_ITEMS),
    ),
    returns={"count": "how many items there were"},
    execute=execute,
)
