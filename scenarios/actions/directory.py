"""Actions of the person in the directory: its groups, a link to its settings, a link by which it signs in (C-113,
C-115, W-43).
"""

from typing import Annotated

from core.errors import Conflict, Invalid
from core.model.history_key import Id
from core.model.people import User, id_text
from core.sentence import language_of
from core.sessions import SignInLinks
from core.sessions.links import LINK_LIFETIME
from scenarios.context import Context
from scenarios.engine import Ending, completed
from scenarios.rehearsal import RehearsedStep
from scenarios.schema import ActionType, Attributes, Own
from scenarios.schema.attributes import Text
from scenarios.sending.person import duration, known_person, refused, required_person
from scenarios.words import sentence


class GroupAttributes(Attributes, frozen=True):
    add: Annotated[Text, Own("The group into which the person is put. The directory learns to know a stranger.")] = ""
    remove: Annotated[Text, Own("The group out of which the person is taken.")] = ""

    def check(self) -> None:
        """Raises Invalid FIELD_INVALID."""
        if self.add and self.add == self.remove:
            raise Invalid("FIELD_INVALID", sentence("group_add_and_remove"), "remove")


async def execute_group(context: Context, written: GroupAttributes) -> Ending:
    """Change the memberships; a repeat changes nothing. Raises Refused."""
    written.check()
    context.require("manage")
    services, user = context.services, await known_person(context)
    groups = services.core.directory.groups
    if written.remove:
        await groups.require(services.tenant, [written.remove])
        if user:
            await groups.remove_member(services.tenant, written.remove, user.id)
    if written.add:
        await groups.require(services.tenant, [written.add])
        await groups.add_member(services.tenant, written.add, user.id if user else await _new_person(context))
    return completed({"directory_id": id_text(user.id) if user else ""})


async def _new_person(context: Context) -> Id:
    """Store the person of the event in the directory; return its id. Raises Refused."""
    names = (context.event.get(name) for name in ("first_name", "last_name"))
    name = " ".join(str(one) for one in names if one) or None
    user = User(f"{context.channel}-{context.person}", name, contacts={context.channel: [context.person]})
    try:
        await context.services.core.directory.users.create(context.services.tenant, user)
    except Conflict as known:
        if known.code != "USER_EXISTS":  # by an execution before a crash
            raise
    return user.id


def rehearse_group(step: RehearsedStep, written: GroupAttributes) -> Ending:
    written.check()
    return completed(step.echo(["directory_id"]))


GROUP = ActionType(
    name="group",
    help="Puts the person who writes into a group of the directory, or takes it out of one.",
    attributes=GroupAttributes,
    placeholder=True,
    one_of=("add", "remove"),
    returns={
        "directory_id": "the person's id in the directory",
        "code": "why it failed: `GROUP_NOT_FOUND`, `LIMIT_REACHED`",
        "wait": "0",
    },
    execute=execute_group,
    rehearse=rehearse_group,
    failure=refused,
)


async def execute_settings_link(context: Context, _: Attributes) -> Ending:
    """A contact has always the same link. Raises Refused."""
    await required_person(context)
    services = context.services
    if not services.public_url:
        raise Conflict("PUBLIC_URL_NOT_SET", sentence("no_public_url"))
    token = await services.core.preferences.token(services.tenant, context.channel, context.person)
    return completed({"settings_url": f"{services.public_url.rstrip('/')}/p/{token}"})


def rehearse_settings_link(step: RehearsedStep, _: Attributes) -> Ending:
    return completed({"settings_url": "https://ada.example.org/p/x"})


SETTINGS_LINK = ActionType(
    name="settings_link",
    help="Makes a link to the page on which the linked person who writes chooses over which channels and in which"
    " language it gets messages. Send it to nobody else.",
    placeholder=True,
    returns={
        "settings_url": "the link; `show` hides it",
        "code": "why it failed: `PERSON_UNKNOWN`, `PUBLIC_URL_NOT_SET`",
        "wait": "0",
    },
    execute=execute_settings_link,
    rehearse=rehearse_settings_link,
    failure=refused,
)


async def execute_sign_in_link(context: Context, _: Attributes) -> Ending:
    """A repeat makes another link; the first one, which was not sent, expires. Raises Refused."""
    user, services = await required_person(context), context.services
    if not services.public_url:
        raise Conflict("PUBLIC_URL_NOT_SET", sentence("no_public_url"))
    secret = await SignInLinks(services.core.store).create(services.tenant, user.id)
    url = f"{services.public_url.rstrip('/')}/#/sign-in/{secret}"
    return completed({"sign_in_url": url, "lasts": duration(LINK_LIFETIME, language_of(user.locale))})


def rehearse_sign_in_link(step: RehearsedStep, _: Attributes) -> Ending:
    return completed({"sign_in_url": "https://ada.example.org/#/sign-in/x", "lasts": "10 min"})


SIGN_IN_LINK = ActionType(
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
    execute=execute_sign_in_link,
    rehearse=rehearse_sign_in_link,
    failure=refused,
)
