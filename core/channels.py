"""The register of channels: which couriers there are and how they want their work cut. A courier enters itself at its
start.

Before: `core.runtime` (registers). After: `core.histories` (cuts parcels), `delivery/` (refuses unknown channels).
"""

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

from core.keys import KEYS
from core.store import Store

# A channel whose courier has never been started: as large as the largest that any provider takes at once.
_UNKNOWN_PARCEL = 2500
_CACHED = 1.0


@dataclass(frozen=True, slots=True)
class Facts:
    """What a courier tells of itself. `parcel`: most recipients of one parcel. `halted`: why it needs a person, "" if
    it runs.
    """

    parcel: int
    halted: str = ""


class Channels:
    """`usual`: the channels of this installation by its settings, known before their couriers were ever started."""

    def __init__(self, store: Store, usual: Sequence[str] = ("telegram", "vk", "sms")) -> None:
        self._store = store
        self._usual = tuple(usual)
        self._facts: Mapping[str, Facts] = {}
        self._read_at = float("-inf")

    async def register(self, channel: str, facts: Facts) -> None:
        """Enter a channel, or renew its facts, in every shard. What is there already is not written again: a courier
        must be able to start on a full server, to make room.
        """
        told = json.dumps(asdict(facts))
        for shard in range(self._store.shards):
            name = KEYS["channels"].at(shard)
            if await self._store.command("HGET", name, channel) != told:
                await self._store.command("HSET", name, channel, told)

    async def known(self) -> Sequence[str]:
        """Channel names: the usual ones, then those whose couriers came later. At most a second old."""
        return [*self._usual, *(channel for channel in await self.facts() if channel not in self._usual)]

    async def facts(self) -> Mapping[str, Facts]:
        """What every registered courier told. At most a second old."""
        if time.monotonic() - self._read_at > _CACHED:
            flat = await self._store.command("HGETALL", KEYS["channels"].at(0))
            self._facts = {channel: Facts(**json.loads(text)) for channel, text in pairs_of(flat).items()}
            self._read_at = time.monotonic()
        return self._facts

    async def parcel_sizes(self, channels: Iterable[str]) -> dict[str, int]:
        """For each channel the most recipients of one parcel."""
        facts = await self.facts()
        return {channel: facts[channel].parcel if channel in facts else _UNKNOWN_PARCEL for channel in channels}


def pairs_of(reply: Mapping[str, str] | Sequence[str]) -> dict[str, str]:
    """HGETALL as RESP3 (a map) or RESP2 (a flat list) answers it."""
    if isinstance(reply, Mapping):
        return dict(reply)
    return dict(zip(reply[::2], reply[1::2], strict=True))
