"""The person of an event in the directory, and the language, the durations and the times in which it is spoken to."""

from datetime import datetime, timedelta, tzinfo

from core.errors import Forbidden, Refused
from core.model.people import User
from core.sentence import duration, language_of
from scenarios import engine
from scenarios.bot.data import Data
from scenarios.context import Context
from scenarios.engine import Ending
from scenarios.words import LANGUAGES, sentence


def moment(at: datetime, timezone: tzinfo) -> str:
    """Return a time on the wall clock of a time zone."""
    return f"{at.astimezone(timezone):%d.%m.%Y %H:%M}"


async def known_person(context: Context) -> User | None:
    """Return the person of the event; None if the directory does not know it, or the event has no person."""
    services = context.services
    if not context.person:
        return None
    return await services.core.directory.users.by_contact(services.tenant, context.channel, context.person)


def language_of_person(context: Context, user: User) -> str:
    """Return the language in which a bot speaks to a person: the one that it has stated, else that of the event."""
    return language_of(user.locale, context.step.language(context.event))


async def required_person(context: Context) -> User:
    """Return the person of the event. Raises Forbidden PERSON_UNKNOWN, PERSON_BLOCKED."""
    user = await known_person(context)
    if user is None:
        raise Forbidden("PERSON_UNKNOWN", sentence("directory_does_not_know"))
    if user.blocked:
        raise Forbidden("PERSON_BLOCKED", sentence("person_is_blocked"))
    return user


def refused(refusal: Refused) -> Ending:
    """Return the end of an action that a rule refuses, with how long to wait."""
    after = refusal.retry_after
    told: dict[str, Data] = {"wait": -(-after // timedelta(minutes=1)) if after else 0}
    told |= {f"wait_{language}": duration(after).in_language(language) if after else "" for language in LANGUAGES}
    return engine.refused(refusal, told)
