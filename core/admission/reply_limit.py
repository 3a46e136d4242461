"""How often a bot replies to an address where a machine may answer, such as a telephone number.

Called by `scenarios.sending.orders` and `core.updates.presses`.
"""

from datetime import timedelta

from core.redis.keys import KEYS
from core.redis.store import Store

MOST_REPLIES = 40
"""To one address in a day."""
_DAY = int(timedelta(days=1).total_seconds())


async def count_reply(store: Store, tenant: str, channel: str, address: str) -> int:
    """Count a reply to an address; return how many it has got in a day. Raises StoreError."""
    owner = tenant, channel, address
    key = KEYS["replies"].at(store.shard_of_person(*owner), *owner)
    await store.command("SET", key, 0, "EX", _DAY, "NX")
    return int(await store.command("INCR", key))
