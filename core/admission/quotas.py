"""Quotas: how many deliveries a sender may send, by its role (D-09, D-10).

`lua/delivery/functions/enqueue.lua` checks and counts in the same step as it stores the delivery, so racing senders
never exceed a quota; here are the rules and the state. Ada's own messages are limited by their address: a machine may
answer at it, such as a telephone number.
"""

from collections.abc import Mapping
from datetime import timedelta

from core.model.clock import in_ms
from core.model.delivery import Quota, QuotaState
from core.model.history_key import Id
from core.redis.keys import KEYS
from core.redis.store import Store

ADMIN = "admin"
"""The role that is held to no quota and no ownership."""
STAFF = "staff"

MOST_REPLIES = 40
"""To one address in a day."""
DAY = timedelta(days=1)


class Quotas:
    """Reads how much of its quota a sender has used. `by_role`: the quotas of the settings; other roles have none."""

    def __init__(self, store: Store, by_role: Mapping[str, Quota] | None = None) -> None:
        self._store = store
        self._by_role = by_role or {}

    def of_role(self, role: str | None) -> Quota | None:
        """Return the quota of a role; None if there is none."""
        return None if role is None or role == ADMIN else self._by_role.get(role)

    async def read(self, tenant: str, sender: Id, quota: Quota | None) -> QuotaState:
        """Return how much a sender has used. `quota` None: that of its last delivery."""
        limit, period_ms = (quota.limit, in_ms(quota.period)) if quota else (0, 0)
        shard = self._store.shard_of(str(sender))
        reply = await self._store.run("read_quota", shard, tenant, str(sender), limit, period_ms)
        used, limit, period_ms, resets_in_ms = (int(part) for part in reply)
        period, resets_in = timedelta(milliseconds=period_ms), timedelta(milliseconds=resets_in_ms)
        return QuotaState(used, limit or None, resets_in, period)


async def may_reply(store: Store, tenant: str, channel: str, address: str) -> bool:
    """Count an automatic message to an address; return whether it may be sent. Raises StoreError."""
    owner = tenant, channel, address
    key = KEYS["replies"].at(store.shard_of_person(*owner), *owner)
    await store.command("SET", key, 0, "EX", int(DAY.total_seconds()), "NX")
    return int(await store.command("INCR", key)) <= MOST_REPLIES
