"""Makes a link by which a linked person signs in to the web console, once (C-115)."""

from core.errors import Conflict
from core.sentence import language_of
from core.sessions import SignInLinks
from core.sessions.links import LINK_LIFETIME
from scenarios.context import Context
from scenarios.engine import Ending
from scenarios.engine.results import completed
from scenarios.rehearsal import RehearsedStep
from scenarios.schema import ActionType, Attributes
from scenarios.sending.person import refused, required_person
from scenarios.sending.phrases import duration
from scenarios.words import sentence


async def execute(context: Context, _: Attributes) -> Ending:
    """A repeat makes another link; the first one, which was not sent, expires. Raises Refused."""
    user, services = await required_person(context), context.services
    if not services.public_url:
        raise Conflict("PUBLIC_URL_NOT_SET", sentence("no_public_url"))
    secret = await SignInLinks(services.core.store).create(services.tenant, user.id)
    url = f"{services.public_url.rstrip('/')}/#/sign-in/{secret}"
    return completed({"sign_in_url": url, "lasts": duration(LINK_LIFETIME, language_of(user.locale))})


def rehearse(step: RehearsedStep, _: Attributes) -> Ending:
    return completed({"sign_in_url": "https://ada.example.org/#/sign-in/x", "lasts": "10 min"})


ACTION = ActionType(
    name="sign_in_link",
    help="Makes a link by which the linked person who writes signs in to the web console. It works once; send it to"
    " nobody else.",
    placeholder=True,
    returns={
        "sign_in_url": "the link; `show` hides it",
        "lasts": "how long it is valid, in words",
        "code": "why it failed: `PERSON_UNKNOWN`, `PUBLIC_URL_NOT_SET`",
        "wait": "0",
    },
    execute=execute,
    rehearse=rehearse,
    failure=refused,
)
