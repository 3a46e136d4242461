"""Changes variables of the person, of the chat and of the run (C-93)."""

from collections.abc import Sequence
from itertools import groupby

from scenarios.bot.variables import STORED_SCOPES
from scenarios.context import Context
from scenarios.context.arguments import duration_of
from scenarios.engine import Ending
from scenarios.engine.results import failed
from scenarios.schema import ActionType, Field, types
from scenarios.schema.variables import VARIABLES, Change, VariableFault, changes_of, ending_of_changes
from scenarios.stores.variables import Variables


async def execute(context: Context) -> Ending:
    """Change the variables once, however often it is executed. Raises Refused."""
    own = context.prepared.own
    expire = duration_of(own, "expire")
    seconds = None if expire is None else int(expire.total_seconds())
    try:
        changes = changes_of(own.get("variables"), context.bot.declared, context.services.timezone, seconds)
    except VariableFault as fault:
        return failed(str(fault))
    return await change(context, changes)


async def change(context: Context, changes: Sequence[Change]) -> Ending:
    """Return the ending of a step that has made these changes. Raises Refused."""
    variables = Variables(context.services.core.store, context.services.tenant)
    stored = {}
    for scope, of_scope in groupby(sorted(changes, key=lambda one: one.scope), lambda one: one.scope):
        if scope in STORED_SCOPES:
            stored[scope] = await variables.change(context.identity, context.event, list(of_scope))
    return ending_of_changes(changes, context.prepared.seen, stored)


ACTION = ActionType(
    name="set",
    help="Sets variables that variables.yaml declares; later actions with a `chain` see the new values.",
    placeholder=True,
    one_of=("variables",),
    fields=(
        Field(
            "variables",
            VARIABLES,
            "What to set: `{person.name: Anna}`. `{add: 1}` counts, `{append: element}` adds to a list, an empty value"
            " forgets.",
        ),
        Field("expire", types.DURATION, "How long the values last, instead of what variables.yaml says."),
    ),
    returns={
        "person": "the variables of the person",
        "chat": "the variables of the chat",
        "run": "the variables of the run",
    },
    execute=execute,
)
