"""Makes a link to the page on which a linked person chooses what it receives (W-43)."""

from core.errors import Conflict
from scenarios.context import Context
from scenarios.engine import Ending
from scenarios.engine.results import completed
from scenarios.rehearsal import RehearsedStep
from scenarios.schema import ActionType, Attributes
from scenarios.sending.person import refused, required_person
from scenarios.words import sentence


async def execute(context: Context, _: Attributes) -> Ending:
    """A contact has always the same link. Raises Refused."""
    await required_person(context)
    services = context.services
    if not services.public_url:
        raise Conflict("PUBLIC_URL_NOT_SET", sentence("no_public_url"))
    token = await services.core.preferences.token(services.tenant, context.channel, context.person)
    return completed({"settings_url": f"{services.public_url.rstrip('/')}/p/{token}"})


def rehearse(step: RehearsedStep, _: Attributes) -> Ending:
    return completed({"settings_url": "https://ada.example.org/p/x"})


ACTION = ActionType(
    name="settings_link",
    help="Makes a link to the page on which the linked person who writes chooses over which channels and in which"
    " language it gets messages. Send it to nobody else.",
    placeholder=True,
    returns={
        "settings_url": "the link; `show` hides it",
        "code": "why it failed: `PERSON_UNKNOWN`, `PUBLIC_URL_NOT_SET`",
        "wait": "0",
    },
    execute=execute,
    rehearse=rehearse,
    failure=refused,
)
