"""Refuses a delivery time that is probably a mistake: one that has passed, and one far ahead (D-51). Pure."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from core.directory.records import raise_first
from core.errors import Invalid

PAST = timedelta(minutes=5)
"""The greatest age of a time: clocks differ, and a call takes a while."""
FAR = timedelta(days=366)


def check_time(requested: datetime | None, now: datetime, *, is_far: bool) -> None:
    """Check a requested time. Raises Invalid DELIVER_AT_PAST, DELIVER_AT_FAR."""
    raise_first(faults_of_time(requested, now, is_far=is_far))


def faults_of_time(requested: datetime | None, now: datetime, *, is_far: bool) -> Iterator[Invalid]:
    """Emit the faults of a requested time: DELIVER_AT_PAST, DELIVER_AT_FAR. `is_far`: the caller knows that it is far
    ahead.
    """
    if requested is None:
        return
    if requested < now - PAST:
        detail = f"{requested:%FT%TZ} has passed; it is {now:%FT%TZ}. Without a time a delivery is sent at once."
        yield Invalid("DELIVER_AT_PAST", detail, "deliver_at")
    if requested > now + FAR and not is_far:
        detail = f"{requested:%FT%TZ} is more than a year ahead. If that is meant, set far to true."
        yield Invalid("DELIVER_AT_FAR", detail, "deliver_at")
