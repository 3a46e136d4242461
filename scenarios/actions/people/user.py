"""Sets or clears the state of a person (C-67)."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from scenarios.bot.foreign_settings import STATE_EXPIRE, STATES_SECTION
from scenarios.context import Context
from scenarios.context.arguments import duration_of, text_of
from scenarios.engine import Ending
from scenarios.engine.results import completed, failed
from scenarios.schema import ActionType, Field, types
from scenarios.stores.people import People

DEFAULT_EXPIRE = "600s"
_DEFAULT = timedelta(seconds=600)


def default_expire(settings: Mapping[str, Any]) -> timedelta:
    """Return how long a state lasts without `expire`. Raises Invalid FIELD_INVALID."""
    section = settings.get(STATES_SECTION)
    found = duration_of(section, STATE_EXPIRE) if isinstance(section, Mapping) else None
    return _DEFAULT if found is None else found


async def execute(context: Context) -> Ending:
    """Set the state of a person. Raises Refused."""
    seen = context.prepared.seen
    if "user_state" not in seen:
        return failed("there is no user_state")
    lifetime = duration_of(seen, "expire")
    lifetime = default_expire(context.bot.settings) if lifetime is None else lifetime
    people = People(context.services.core.store, context.services.tenant)
    await people.set_state(context.channel, text_of(seen, "user_id"), text_of(seen, "user_state"), lifetime)
    return completed()


ACTION = ActionType(
    name="user",
    help="Sets the state of the person, which the triggers of the kind `state` compare with.",
    fields=(
        Field("user_state", types.TEXT, 'The name of the state; `""` clears it.'),
        Field("expire", types.DURATION, "How long the state lasts.", default=DEFAULT_EXPIRE),
    ),
    execute=execute,
)
