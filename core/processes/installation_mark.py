"""The mark of the installation in the store: it shows whether the data are those with which a process began.

A server that was emptied, or has started without its data or with old ones, answers as before. Every process looks at
the mark every few seconds, in a cluster at that of each shard, and begins anew if it is another one
(`cli.processes.noted_process`), so that all that a start writes is there again. The loss is noted for operators until
one accepts it.
"""

import asyncio
import secrets
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from enum import StrEnum
from typing import NamedTuple

import msgspec
from msgspec import Struct

from core.errors import StoreRefuses
from core.model.clock import from_ms, in_ms
from core.redis.keys import KEYS
from core.redis.store import Store

TOLERANCE = timedelta(minutes=1)
"""Data that are older than those that were known by less are what a promoted replica, or a server that lost power, may
lack: `core.redis.primary` sees to it."""

KEPT = timedelta(days=30)
"""Time for which a loss is shown if no operator accepts it."""

ACCEPT_LOSS = "./ada doctor --accept-loss"
"""Shows a loss no longer."""


class LossKind(StrEnum):
    """`emptied`: there are no data; `older`: the data are of an earlier time; `replaced`: they are of another store."""

    EMPTIED = "emptied"
    OLDER = "older"
    REPLACED = "replaced"


class DataLoss(Struct, frozen=True):
    """A loss of data: in `shards` of `of`, noticed `at`; the data that are there are of `since`, 0 if none. Unix ms."""

    kind: LossKind
    shards: Sequence[int]
    of: int
    at: int
    since: int = 0

    @property
    def sentence(self) -> str:
        """Return what has happened."""
        part = f" in {len(self.shards)} of {self.of} shards" if len(self.shards) < self.of else ""
        return {
            LossKind.EMPTIED: f"the data of the store are gone{part} since {_shown(self.at)}",
            LossKind.OLDER: f"the data of the store{part} are those of {_shown(self.since)} since {_shown(self.at)}:"
            " what was stored between is lost",
            LossKind.REPLACED: f"the store has other data{part} since {_shown(self.at)}:"
            " another server is behind its address",
        }[self.kind]


LOSS_REMEDY = (
    "people, groups, later API keys, webhooks, deliveries and jobs are not made again: restore a backup"
    f" (./ada restore); afterwards, or to go on without them: {ACCEPT_LOSS}"
)


class _InstallationMark(NamedTuple):
    """The mark of a shard. `id` "": there is none. `at`: when a process was there last, by the server's clock."""

    id: str
    at: int

    @property
    def origin(self) -> str:
        return self.id.partition(".")[0]


class InstallationMark:
    """The marks as this process has read them. Methods raise StoreError."""

    def __init__(self, store: Store) -> None:
        self._store = store
        marked = store.shards if store.shard_map.cluster else 1  # without a cluster all shards are lost together
        self._keys = [KEYS["installation"].at(shard) for shard in range(marked)]
        self._known: Sequence[_InstallationMark] = [_InstallationMark("", 0)] * marked

    async def begin(self) -> None:
        """Mark the shards that have no mark, and take the data that are there for ours."""
        new = secrets.token_hex(8)
        with suppress(StoreRefuses):  # on a full server a later start does it
            for shard, key in enumerate(self._keys):
                if await self._store.command("HSETNX", key, "id", new):
                    await self._store.command("HSET", key, "at", await self._now(shard))
        self._known = await self._read()

    async def move(self) -> None:
        """Write that a process is there now, where the data are those that it knows."""
        for shard, (key, known, found) in enumerate(zip(self._keys, self._known, await self._read(), strict=True)):
            now = await self._now(shard)
            if found.id and found.at < now and _loss(known, found) is None:
                with suppress(StoreRefuses):
                    await self._store.command("HSET", key, "at", now)

    async def find_loss(self) -> DataLoss | None:
        """Return what is not as this process has known it: as the first process has noted it, or as found here."""
        found = await self._read()
        pairs = list(zip(self._known, found, strict=True))
        kinds = {shard: kind for shard, pair in enumerate(pairs) if (kind := _loss(*pair))}
        if not kinds:
            self._known = [_InstallationMark(new.id, max(new.at, old.at)) for old, new in pairs]
            return None
        until = max(self._known[shard].at for shard in kinds)
        noted = await last_loss(self._store)
        if noted and noted.at >= until:
            return noted
        since = min(found[shard].at for shard in kinds)
        kind = min(kinds.values(), key=list(LossKind).index)
        return DataLoss(kind, list(kinds), len(found), await self._now(0), since)

    async def note(self, loss: DataLoss) -> None:
        """Note a loss for operators; mark older data as noticed, so that the other processes notice it, too."""
        text = msgspec.json.encode(loss).decode()
        await self._store.command("SET", KEYS["data_loss"].at(0), text, "PX", in_ms(KEPT))
        for key, old, new in zip(self._keys, self._known, await self._read(), strict=True):
            if _loss(old, new) is LossKind.OLDER and old.id == new.id:
                await self._store.command("HSET", key, "id", f"{new.id}.{new.at}", "at", loss.at)

    async def _read(self) -> Sequence[_InstallationMark]:
        found = await asyncio.gather(*(self._store.read_hash(key, "id", "at") for key in self._keys))
        return [_InstallationMark(name or "", int(at or 0)) for name, at in found]

    async def _now(self, shard: int) -> int:
        """Return the time of the server that has a shard, in Unix ms: one clock for all processes."""
        home = shard if self._store.shard_map.cluster else 0
        seconds, micros = await self._store.command_at(home, "TIME")
        return int(seconds) * 1000 + int(micros) // 1000


def _loss(known: _InstallationMark, found: _InstallationMark) -> LossKind | None:
    if not known.id:
        return None
    if not found.id:
        return LossKind.EMPTIED
    if found.origin != known.origin:
        return LossKind.REPLACED
    is_older = found.id != known.id or found.at + in_ms(TOLERANCE) < known.at
    return LossKind.OLDER if is_older else None


async def last_loss(store: Store) -> DataLoss | None:
    """Return the loss that no operator has accepted. Raises StoreError."""
    found = await store.command("GET", KEYS["data_loss"].at(0))
    return msgspec.json.decode(found, type=DataLoss) if found else None


async def accept_loss(store: Store) -> None:
    """Show the last loss no longer. Raises StoreError."""
    await store.command("DEL", KEYS["data_loss"].at(0))


def _shown(ms: int) -> str:
    return f"{from_ms(ms):%Y-%m-%d %H:%M:%S} UTC"
