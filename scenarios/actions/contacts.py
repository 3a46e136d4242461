"""Links the contact of the event to a person of the directory by a mailed code, and unlinks it (D-28, D-29, C-115)."""

from typing import Annotated

from core.directory.linking import Link, Linking, is_code
from core.errors import Conflict, Invalid, NotFound
from core.model.clock import from_ms
from core.model.people import User, faults_of_email, id_text
from core.sentence import language_of
from scenarios.bot.data import Data
from scenarios.context import Context
from scenarios.engine import Ending, completed
from scenarios.rehearsal import RehearsedStep
from scenarios.schema import ActionType, Attributes, Own
from scenarios.schema.attributes import Text
from scenarios.sending.person import duration, known_person, refused
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
        return completed(_linked(user))  # an execution before a crash has done it
    linking, services = linking_of(context), context.services
    if is_email(written.written):
        request = await linking.request(services.tenant, context.channel, context.person, written.written)
        left = request.expires_at - from_ms(services.now_ms())
        language = language_of(str(context.event.get("language_code") or ""))
        return completed(_mailed(written.written, duration(left, language), language))
    link = await _confirmed(context, linking, written.written)
    return completed(_linked(await services.core.directory.users.find(services.tenant, link.user)))


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
        language = language_of(str(step.event.get("language_code") or ""))
        return completed(_mailed(written.written, "24 min", language))
    checked(written.written)
    name = str(step.event.get("first_name") or "")
    return completed({"linked": LINKED, "email": "", "lasts": "", "name": name, "role": "trainer", "language": "ru"})


def _mailed(email: str, lasts: str, language: str) -> dict[str, Data]:
    return {"linked": MAILED, "email": email, "lasts": lasts, "name": "", "role": "", "language": language}


def _linked(user: User) -> dict[str, Data]:
    who = {"name": user.name or str(user.id), "role": user.role, "language": language_of(user.locale)}
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
