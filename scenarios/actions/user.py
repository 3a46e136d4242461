"""Sets or clears the state of a person (C-67)."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated

from scenarios.bot.data import Data
from scenarios.bot.model import STATE_EXPIRE, STATES_SECTION
from scenarios.context import Context
from scenarios.engine import Ending, completed, failed
from scenarios.rehearsal import RehearsedStep
from scenarios.schema import ActionType, Attributes, Seen, conversion
from scenarios.schema.attributes import Duration, Text, TextOrEmpty
from scenarios.stores.people import People
from scenarios.words import sentence

_DEFAULT = timedelta(seconds=600)
_NO_STATE = failed(sentence("no_user_state"))


class UserAttributes(Attributes, frozen=True):
    """`user_id`: the person."""

    user_state: Annotated[TextOrEmpty, Seen('The name of the state; `""` clears it.', may_be_empty=True)] = None
    expire: Annotated[Duration, Seen("How long the state lasts.", default="600s")] = None
    user_id: Annotated[Text, Seen()] = ""

    def lifetime(self, settings: Mapping[str, Data]) -> timedelta:
        """Return how long the state lasts. Raises Invalid FIELD_INVALID."""
        section = settings.get(STATES_SECTION)
        written = section.get(STATE_EXPIRE) if isinstance(section, Mapping) else None
        found = conversion.duration(written, STATE_EXPIRE) if self.expire is None else self.expire
        return _DEFAULT if found is None else found


async def execute(context: Context, written: UserAttributes) -> Ending:
    """Set the state of a person. Raises Refused."""
    if written.user_state is None:
        return _NO_STATE
    people = People(context.services.core.store, context.services.tenant)
    lifetime = written.lifetime(context.bot.settings)
    await people.set_state(context.channel, written.user_id, written.user_state, lifetime)
    return completed()


def rehearse(step: RehearsedStep, written: UserAttributes) -> Ending:
    return _NO_STATE if written.user_state is None else completed()


ACTION = ActionType(
    name="user",
    help="Sets the state of the person, which the triggers of the kind `state` compare with.",
    attributes=UserAttributes,
    execute=execute,
    rehearse=rehearse,
)
