"""Shards in which a claim would find nothing: read from their keys, for a hundredth of the price of a claim.

Nothing of the tube can be claimed in a shard while the tube's bell exists; nothing falls due unnoticed while another
worker keeps the shard's timer. The keys of all shards of a primary are read in one command, in a cluster by one for
each shard in one round trip.

Used by `core.queue.workers.worker`; `lua/queue/modules/claiming.lua` writes the keys.
"""

import asyncio
from collections.abc import Sequence

from core.redis.keys import KEYS
from core.redis.store import Store


async def idle_shards(store: Store, tube: str, owner: str, shards: Sequence[int]) -> dict[int, int]:
    """Return those of the shards that need no claim of this worker, and the moment for which the keeper of the timer
    waits: the server's ms, -1 for none. The shards have one primary. Raises StoreError.
    """
    groups = [[shard] for shard in shards] if store.shard_map.cluster else [shards]
    texts = await asyncio.gather(*(store.command("MGET", *_keys(tube, group)) for group in groups))
    found = {}
    for group, read in zip(groups, texts, strict=True):
        for shard, bell, timer in zip(group, read[::2], read[1::2], strict=True):
            keeper, _, moment = (timer or "").rpartition(" ")
            if bell and keeper and keeper != owner:
                found[shard] = int(moment)
    return found


def _keys(tube: str, shards: Sequence[int]) -> list[str]:
    return [key for shard in shards for key in (KEYS["bell"].at(shard, tube), KEYS["timer"].at(shard))]
