"""The people who are due by a schedule, and the event that starts it (C-96). Pure."""

from collections.abc import Mapping
from datetime import datetime, timedelta, tzinfo
from hashlib import blake2b

from core.model.clock import to_ms
from scenarios.bot.data import Data
from scenarios.bot.schedules import Schedule
from scenarios.bot.variables import split_name
from scenarios.engine.triggers import SCHEDULED
from scenarios.schema.variables import moment_of


def due_before(schedule: Schedule, seen: Mapping[str, Mapping[str, Data]], zone: tzinfo) -> datetime | None:
    """Return when a person with these variables is due; None if the date is not set."""
    scope, name = split_name(schedule.before) or ("", "")
    value = moment_of(seen.get(scope, {}).get(name), zone)
    return schedule.moment_before(value, zone) if value else None


LATEST = timedelta(hours=23)
"""Time after which a schedule no longer starts for a date that was set too late: less than the day for which a task
that was put once is known, so that it starts once.
"""


def late_before(
    schedule: Schedule, seen: Mapping[str, Mapping[str, Data]], zone: tzinfo, now: datetime
) -> datetime | None:
    """Return the time that has passed before a date that is still to come; None if there is none (C-113)."""
    scope, name = split_name(schedule.before) or ("", "")
    value, at = moment_of(seen.get(scope, {}).get(name), zone), due_before(schedule, seen, zone)
    return at if schedule.late and value and at and now - LATEST < at <= now < value else None


def event_of(schedule: Schedule, at: datetime, about: Mapping[str, Data], zone: tzinfo) -> dict[str, Data]:
    """Return the event that starts a schedule for a person or a chat: the same for each repeat."""
    whose = f"{schedule.name}\n{to_ms(at)}\n{about['channel']}\n{about['user_id']}\n{about['chat_id']}"
    chat = {"chat_type": "group"} if about["user_id"] == SCHEDULED and about["chat_id"] != SCHEDULED else {}
    return {
        "id": blake2b(whose.encode(), digest_size=16).hexdigest(),
        "source": SCHEDULED,
        "kind": SCHEDULED,
        "schedule": schedule.name,
        "due": at.astimezone(zone).isoformat(),
        **about,
        **chat,
    }
