"""Limits Ada's own messages to an address where a machine may answer, such as a telephone number.

Called by `scenarios.sending.orders`, `scenarios.sending.following` and `core.updates.answer_worker`.
"""

from datetime import timedelta

from core.redis.keys import KEYS
from core.redis.store import Store

MOST_REPLIES = 40
"""To one address in a day."""

DAY = timedelta(days=1)


async def may_reply(store: Store, tenant: str, channel: str, address: str) -> bool:
    """Count an automatic message to an address; return whether it may be sent. Raises StoreError."""
    owner = tenant, channel, address
    key = KEYS["replies"].at(store.shard_of_person(*owner), *owner)
    await store.command("SET", key, 0, "EX", int(DAY.total_seconds()), "NX")
    return int(await store.command("INCR", key)) <= MOST_REPLIES
