"""The quota of a sender: how many deliveries it may send in a period. Frozen values."""

from datetime import timedelta

from msgspec import Struct


class Quota(Struct, frozen=True):
    """At most `limit` deliveries of one sender in any `period`."""

    limit: int
    period: timedelta


class QuotaState(Struct, frozen=True):
    """`used`: deliveries of the last period. `limit` None: there is no quota. `resets_in`: when `used` next falls, zero
    if it is 0. `period`: that of the quota, zero if there is none.
    """

    used: int
    limit: int | None
    resets_in: timedelta
    period: timedelta


NO_QUOTA = QuotaState(0, None, timedelta(), timedelta())
