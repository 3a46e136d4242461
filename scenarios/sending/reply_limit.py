"""A limit for replies in channels in which a machine may answer: an answering machine is not answered without end.

The count is the same as that of the other bots.
"""

from datetime import timedelta

from core.redis.keys import KEYS
from couriers.channel import channels
from scenarios.context import Context

MOST_REPLIES = 40
"""To one address in a day."""

_DAY = int(timedelta(days=1).total_seconds())


async def may_reply(context: Context, address: str) -> bool:
    """Count a message to an address. A second try counts again, which only makes the limit stricter."""
    record = channels().get(context.channel)
    if record is None or not record.limits_replies:
        return True
    store = context.services.core.store
    owner = context.services.tenant, context.channel, address
    key = KEYS["replies"].at(store.shard_of_person(*owner), *owner)
    await store.command("SET", key, 0, "EX", _DAY, "NX")
    return int(await store.command("INCR", key)) <= MOST_REPLIES
