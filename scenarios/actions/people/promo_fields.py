"""Reads what an author wrote in an action about a promo code: its name, its person, when it is valid.

What an earlier action of the chain has returned is not this one's, so only what the author wrote counts.
"""

import re
from datetime import MAXYEAR, datetime, timedelta

from scenarios.context import Context
from scenarios.context.arguments import duration_of, flag_of, moment_of, text_of
from scenarios.schema.promo import ALL_PEOPLE
from scenarios.stores.promo import ALWAYS

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}|\d{2}\.\d{2}\.\d{4}", re.ASCII)
_DATES = ("started_at", "expired_at", "expire", "permanent")


def name_of(context: Context) -> str:
    own, seen = context.prepared.own, context.prepared.seen
    return text_of(own if "promo_name" in own else seen, "promo_name")


def user_of(context: Context) -> str:
    """Return the only person who may use it, by default that of the event; "" for all people."""
    own = context.prepared.own
    named = next((text_of(own, name) for name in ("target_user_id", "user_id") if name in own), context.person)
    return "" if named.lower() in ALL_PEOPLE else named


def writes_dates(context: Context) -> bool:
    """Return whether the author limits the time in which it is valid."""
    return any(context.prepared.own.get(name) not in (None, "") for name in _DATES)


def starts_of(context: Context) -> datetime | None:
    """Return when the code begins to be valid; None if it is not written. Raises Invalid."""
    own = context.prepared.own
    return ALWAYS[0] if flag_of(own, "permanent") else moment_of(own, "started_at", context.services.timezone)


def ends_of(context: Context, starts: datetime) -> datetime | None:
    """Return when the code stops being valid: a day counts to its end. None: never, or not written. Raises Invalid."""
    own, zone = context.prepared.own, context.services.timezone
    if flag_of(own, "permanent"):
        return ALWAYS[1]
    if (lifetime := duration_of(own, "expire")) is not None:
        return starts + lifetime
    ends = moment_of(own, "expired_at", zone)
    is_day = _DAY.fullmatch(text_of(own, "expired_at")) is not None
    return ends.astimezone(zone) + timedelta(days=1) if ends and is_day and ends.year < MAXYEAR else ends
