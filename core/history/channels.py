"""The register of channels: which couriers there are and how they want their work cut. A courier enters itself at its
start.

Before: `core.courier.runtime` (registers). After: `core.history.deliveries` (cuts parcels), `delivery/` (refuses
unknown channels).
"""

import json
import logging
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple

from core.errors import StoreFull
from core.redis.keys import KEYS
from core.redis.store import Store

log = logging.getLogger(__name__)

# A channel whose courier has never been started: as large as the largest that any provider takes at once.
_UNKNOWN_PARCEL = 2500
_CACHED = 1.0


@dataclass(frozen=True, slots=True)
class ChannelFacts:
    """What a courier tells of itself. `parcel`: most recipients of one parcel. `halted`: why it needs a person, "" if
    it runs.
    """

    parcel: int
    halted: str = ""


class ChannelRegister(NamedTuple):
    """`names`: the usual channels, then those whose couriers came later; `parcel_sizes`: for any channel the most
    recipients of one parcel.
    """

    names: Sequence[str]
    parcel_sizes: Mapping[str, int]


class Channels:
    """`usual`: the channels of this installation by its settings, known before their couriers were ever started."""

    def __init__(self, store: Store, usual: Sequence[str] = ("telegram", "vk", "sms")) -> None:
        self._store = store
        self._usual = tuple(usual)
        self._known: ChannelRegister | None = None
        self._until = float("-inf")

    async def register(self, channel: str, facts: ChannelFacts) -> None:
        """Enter a channel, or renew its facts, in every shard. On a full server it stays as it was: a courier must be
        able to start there, to make room.
        """
        try:
            for shard in range(self._store.shards):
                await self._store.command("HSET", KEYS["channels"].at(shard), channel, json.dumps(asdict(facts)))
        except StoreFull as fault:
            log.warning("%s not entered among the channels: %s", channel, fault)

    def recall(self) -> ChannelRegister | None:
        """What was read within the last second."""
        return self._known if time.monotonic() < self._until else None

    async def read(self) -> ChannelRegister:
        """What is there just now."""
        entered = await self._store.command("HGETALL", KEYS["channels"].at(0))
        facts = {channel: ChannelFacts(**json.loads(text)) for channel, text in entered.items()}
        names = tuple(dict.fromkeys((*self._usual, *facts)))
        sizes = defaultdict(lambda: _UNKNOWN_PARCEL, {name: one.parcel for name, one in facts.items()})
        self._known, self._until = ChannelRegister(names, sizes), time.monotonic() + _CACHED
        return self._known
