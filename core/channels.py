"""The register of channels: which couriers there are and how they want their work cut. A courier enters itself at its
start.

Before: `core.runtime` (registers). After: `core.histories` (cuts parcels), `delivery/` (refuses unknown channels).
"""

import json
import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

from core.errors import StoreFull
from core.keys import KEYS
from core.store import Store

log = logging.getLogger(__name__)

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
        self._known = self._usual
        self._read_at = float("-inf")

    async def register(self, channel: str, facts: Facts) -> None:
        """Enter a channel, or renew its facts, in every shard. On a full server it stays as it was: a courier must be
        able to start there, to make room.
        """
        try:
            for shard in range(self._store.shards):
                await self._store.command("HSET", KEYS["channels"].at(shard), channel, json.dumps(asdict(facts)))
        except StoreFull as fault:
            log.warning("%s not entered among the channels: %s", channel, fault)

    async def known(self) -> Sequence[str]:
        """Channel names: the usual ones, then those whose couriers came later. At most a second old."""
        await self.facts()
        return self._known

    async def facts(self) -> Mapping[str, Facts]:
        """What every registered courier told. At most a second old."""
        if time.monotonic() - self._read_at > _CACHED:
            flat = await self._store.command("HGETALL", KEYS["channels"].at(0))
            self._facts = {channel: Facts(**json.loads(text)) for channel, text in pairs_of(flat).items()}
            self._known = tuple(dict.fromkeys((*self._usual, *self._facts)))
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
