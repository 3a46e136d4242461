"""Actions of the person in the directory: links its contact by a mailed code and unlinks it, puts it into groups,
makes links to its settings and to sign in (C-113, C-115, D-28, D-29, W-43).
"""

from typing import Annotated

from core.directory.linking import Link, Linking, is_code
from core.errors import Conflict, Invalid, NotFound
from core.model.clock import from_ms
from core.model.history_key import Id
from core.model.people import User, faults_of_email, id_text
from core.sentence import duration, language_of
from core.sessions import SignInLinks
from core.sessions.links import LINK_LIFETIME
from scenarios.bot.data import Data
from scenarios.context import Context
from scenarios.engine import Ending, completed
from scenarios.rehearsal import RehearsedStep
from scenarios.schema import ActionType, Attributes, Own
from scenarios.schema.attributes import Text
from scenarios.sending.person import known_person, language_of_person, refused, required_person
from scenarios.stores import step_results
from scenarios.words import sentence

MAILED, LINKED = "mailed", "linked"


class LinkContactAttributes(Attributes, frozen=True):
    written: Annotated[
        Text,
        Own("What the person has written: its e-mail address, to which a code is mailed, or that code."),
    ] = ""


async def execute_link_contact(context: Context, written: LinkContactAttributes) -> Ending:
    """Mail a code, or link the contact. Repeated after a crash it may mail a second code, which replaces the first.
    Raises Refused.
    """
    user = await known_person(context)
    if user is not None and is_code(written.written):
        return completed(_linked(context, user))  # an execution before a crash has done it
    linking, services = linking_of(context), context.services
    if is_email(written.written):
        language = language_of(context.step.language(context.event))
        request = await linking.request(services.tenant, context.channel, context.person, written.written, language)
        left = request.expires_at - from_ms(services.now_ms())
        return completed(_mailed(written.written, duration(left).in_language(language), language))
    link = await _confirmed(context, linking, written.written)
    return completed(_linked(context, await services.core.directory.users.find(services.tenant, link.user)))


async def _confirmed(context: Context, linking: Linking, written: str) -> Link:
    """Link by a code. A text that is none is a wrong code of a person to whom one was mailed. Raises as `checked`, and
    as `Linking.confirm`.
    """
    if not written or "@" in written:
        checked(written)
    try:
        return await linking.confirm(context.services.tenant, context.channel, context.person, written)
    except NotFound:
        checked(written)
        raise


def linking_of(context: Context) -> Linking:
    """Return the linking of contacts. Raises Conflict MAIL_NOT_SET_UP."""
    if context.services.linking is None:
        raise Conflict("MAIL_NOT_SET_UP", sentence("no_mail_server"))
    return context.services.linking


def is_email(written: str) -> bool:
    return next(faults_of_email(written), None) is None


def checked(written: str) -> str:
    """Return a code. Raises Invalid EMAIL_MALFORMED, CODE_MALFORMED."""
    if "@" in written:
        raise Invalid("EMAIL_MALFORMED", sentence("no_email_address"), "written")
    if not is_code(written):
        raise Invalid("CODE_MALFORMED", sentence("no_code"), "written")
    return written


def rehearse_link_contact(step: RehearsedStep, written: LinkContactAttributes) -> Ending:
    """Every address is known, and every code is right."""
    if is_email(written.written):
        language = language_of(step.step.language(step.event))
        return completed(_mailed(written.written, "24 min", language))
    checked(written.written)
    name = str(step.event.get("first_name") or "")
    return completed({"linked": LINKED, "email": "", "lasts": "", "name": name, "role": "trainer", "language": "ru"})


def _mailed(email: str, lasts: str, language: str) -> dict[str, Data]:
    return {"linked": MAILED, "email": email, "lasts": lasts, "name": "", "role": "", "language": language}


def _linked(context: Context, user: User) -> dict[str, Data]:
    who = {"name": user.name or str(user.id), "role": user.role, "language": language_of_person(context, user)}
    return {"linked": LINKED, "email": "", "lasts": "", **who}


LINK_CONTACT = ActionType(
    name="link_contact",
    help="Links the contact of the person who writes to a person of the directory: an e-mail address has a code mailed"
    " to it, and the code links. The payload of a deep link, `/start PAYLOAD`, may be either.",
    attributes=LinkContactAttributes,
    placeholder=True,
    one_of=("written",),
    returns={
        "linked": "`mailed` or `linked`",
        "email": "the address to which the code was mailed",
        "lasts": "how long the code is valid, in words",
        "name": "the name of the linked person",
        "role": "its role in the directory",
        "language": "its language, or that of the chat: in it the texts after it are",
        "code": "why it failed: `EMAIL_MALFORMED`, `EMAIL_UNKNOWN`, `CODE_MALFORMED`, `CODE_MISSING`, `CODE_WRONG`,"
        " `CODE_EXPIRED`, `CONTACT_LINKED`, `TOO_MANY_GUESSES`, `TOO_MANY_MAILS`, `MAIL_NOT_SET_UP`, `MAIL_REFUSED`,"
        " `MAIL_UNAVAILABLE`, `IMPORT_RUNNING`",
        "wait": "of `TOO_MANY_MAILS`: after how many minutes the next code may be mailed, otherwise 0",
        "wait_en": "the same in words, such as `23 h 5 min`",
        "wait_ru": "the same in Russian",
    },
    outside=lambda _: True,
    execute=execute_link_contact,
    rehearse=rehearse_link_contact,
    failure=refused,
)


async def execute_unlink_contact(context: Context, _: Attributes) -> Ending:
    """Unlink once, however often it is executed. Raises NotFound CONTACT_NOT_LINKED."""
    user = await known_person(context)
    if user is None:
        if await step_results.recall(context) is None:
            raise NotFound("CONTACT_NOT_LINKED", sentence("directory_does_not_know"))
        return completed()
    await step_results.remember(context, id_text(user.id))
    await linking_of(context).unlink(context.services.tenant, context.channel, context.person)
    return completed()


UNLINK_CONTACT = ActionType(
    name="unlink_contact",
    help="Unlinks the contact of the person who writes: the person gets no more messages there.",
    placeholder=True,
    returns={"code": "why it failed: `CONTACT_NOT_LINKED`, `IMPORT_RUNNING`", "wait": "0"},
    outside=lambda _: True,
    execute=execute_unlink_contact,
    rehearse=lambda step, _: completed(),
    failure=refused,
)


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
    lasts = duration(LINK_LIFETIME).in_language(language_of_person(context, user))
    return completed({"sign_in_url": url, "lasts": lasts})


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
