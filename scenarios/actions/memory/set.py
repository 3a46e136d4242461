"""Changes variables of the person, of the chat, of the run and of the bot (C-93, C-105)."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Annotated

from scenarios.bot.data import Data
from scenarios.bot.variables import STORED_SCOPES
from scenarios.context import Context
from scenarios.engine import Ending
from scenarios.engine.results import failed
from scenarios.placeholders.values import as_text, is_list
from scenarios.rehearsal import RehearsedStep
from scenarios.schema import ActionType, Attributes, Own, conversion
from scenarios.schema.attributes import Duration
from scenarios.schema.variables import (
    REMOVE,
    VARIABLES,
    Change,
    NewValues,
    VariableFault,
    changes_of,
    ending_of_changes,
)
from scenarios.stores.variables import Variables
from scenarios.words import sentence


class SetAttributes(Attributes, frozen=True):
    variables: Annotated[
        NewValues,
        VARIABLES,
        conversion.mapping,
        Own(
            "What to set: `{person.name: Anna}`. `{add: 1}` counts, `{append: element}` adds to a list,"
            " `{remove: element}` takes away, an empty value forgets. `{if_empty: value}` sets what has no value,"
            " `{append: element, times: 1}` adds what is not there; otherwise the action fails with `VARIABLE_TAKEN`."
        ),
    ] = None
    expire: Annotated[Duration, Own("How long the values last, instead of what variables.yaml says.")] = None

    @property
    def seconds(self) -> int | None:
        return None if self.expire is None else int(self.expire.total_seconds())


async def execute(context: Context, written: SetAttributes) -> Ending:
    """Change the variables once, however often it is executed. Raises Refused."""
    declared, zone = context.bot.declared, context.services.timezone
    try:
        changes = changes_of(written.variables, declared, zone, written.seconds)
    except VariableFault as fault:
        return failed(fault.said)
    return await change(context, changes)


def rehearse(step: RehearsedStep, written: SetAttributes) -> Ending:
    try:
        changes = changes_of(written.variables, step.bot.declared, step.zone, written.seconds)
    except VariableFault as fault:
        return failed(fault.said)
    return ending_of_changes(changes, step.prepared.seen, {})


async def change(context: Context, changes: Sequence[Change]) -> Ending:
    """Return the ending of a step that has made these changes. Raises Refused."""
    for one in changes:
        if one.verb == REMOVE and one.value not in ("", *_elements(context.prepared.seen.get(one.scope), one.name)):
            context.warn(sentence("nothing_to_remove", name=f"{one.scope}.{one.name}", value=as_text(one.value)))
    variables = Variables(context.services.core.store, context.services.tenant)
    stored = {}
    for scope, of_scope in groupby(sorted(changes, key=lambda one: one.scope), lambda one: one.scope):
        if scope in STORED_SCOPES:
            stored[scope] = await variables.change(context.identity, context.event, list(of_scope))
    return ending_of_changes(changes, context.prepared.seen, stored)


def _elements(variables: Data, name: str) -> list[Data]:
    found = variables.get(name) if isinstance(variables, Mapping) else None
    return list(found) if is_list(found) else []


ACTION = ActionType(
    name="set",
    help="Sets variables that variables.yaml declares; later actions with a `chain` see the new values.",
    attributes=SetAttributes,
    placeholder=True,
    one_of=("variables",),
    returns={
        "person": "the variables of the person",
        "chat": "the variables of the chat",
        "run": "the variables of the run",
        "bot": "the variables of the bot",
    },
    execute=execute,
    rehearse=rehearse,
)
