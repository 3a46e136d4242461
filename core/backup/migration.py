"""Moves all data of Ada from one server to another server or a cluster, while Ada is stopped (docs/decisions/0111).

    mark both servers ─▶ copy the keys that differ ─▶ compare every key ─▶ mark the source as moved ─▶ free the target

While a mark stands, no process of Ada starts there. Interrupted at any moment, the next run goes on: keys that are
equal already are not written again. Numbers of shards, ids and times of expiry stay as they are.

Invariant: the target is without its mark only when it has every key of the source, and the source is marked as moved
before (tests/core/backup/test_migration.py).
"""

import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from uuid import uuid4

from core.backup.archive import GONE, StoredValue, check_unused
from core.backup.key_space import KeySpace
from core.errors import DataMoved, SetupError
from core.model.text.characters import counted
from core.redis.keys import KEYS
from core.redis.server_checks import MigrationMark, Side, refuse_other_layout

_MARK = KEYS["migration"].at(0)
_SKEW_MS = 5000
"""By this much the clocks of the servers may differ: a key that expires sooner may be gone on one of them."""


@dataclass(slots=True)
class Migration:
    """`read`: how many keys of the source were looked at; `written`: how many had to be; `keys`: by the first word of
    their names, as compared at the end.
    """

    source: KeySpace
    target: KeySpace
    read: int = 0
    written: int = 0
    keys: dict[str, int] = field(default_factory=dict)

    async def run(self) -> int:
        """Move the data. Returns the number of shards. Raises SetupError, DataMoved, StoreUnavailable: then no process
        starts on the target, nor on the source once copying has begun.
        """
        shards = await self._shards()
        mark = await self._begin()
        async for keys in self.source.pages():
            different = await self._different(keys)
            await self.target.write(different)
            self.read += len(keys)
            self.written += len(different)
        await self._compare()
        await self._check_source_unused()
        for place in (self.source, self.target):
            if await place.is_replaced():
                raise SetupError(f"a primary of {place.name} was replaced during the migration; run it again")
        done = MigrationMark(mark.id, Side.SOURCE, self.target.name, is_done=True)
        await self.source.command("SET", _MARK, done.text)
        await self.target.command("DEL", _MARK)
        return shards

    async def _shards(self) -> int:
        """Return the number of shards of the data. Raises SetupError without data, LayoutUnknown."""
        found = await self.source.command("GET", KEYS["shards"].at(0))
        if found is None:
            raise SetupError(f"there are no data of Ada on the server at {self.source.name}; set ADA_REDIS_URL")
        for shard in range(int(found)):
            layout = await self.source.command("GET", KEYS["layout"].at(shard))
            refuse_other_layout(None if layout is None else layout.decode(), int(found))
        return int(found)

    async def _begin(self) -> MigrationMark:
        """Mark both servers, or find the marks of an interrupted run."""
        at_source, at_target = await _mark_of(self.source), await _mark_of(self.target)
        if at_source and at_target and at_source.id == at_target.id and at_target.side is Side.TARGET:
            await self._check_source_unused()
            return at_source
        if at_source and (at_source.is_done or at_source.side is Side.TARGET):
            raise DataMoved(f"{DataMoved.code}: {at_source.sentence}")
        await self._check_target_empty()
        mark = MigrationMark(uuid4().hex, Side.SOURCE, self.target.name)
        await self.source.command("SET", _MARK, mark.text)
        try:
            await self._check_source_unused()
        except SetupError:
            await self.source.command("DEL", _MARK)
            raise
        await self.target.command("SET", _MARK, MigrationMark(mark.id, Side.TARGET, self.source.name).text)
        return mark

    async def _check_source_unused(self) -> None:
        await check_unused(self.source.connections[0], self.source.address.database)

    async def _check_target_empty(self) -> None:
        async for keys in self.target.pages():
            if keys:
                raise SetupError(
                    f"the target {self.target.name} has data of Ada that are not of this migration, such as"
                    f" {keys[0].decode(errors='replace')!r}; nothing was changed. Empty it, or name another one"
                )

    async def _different(self, keys: Sequence[bytes]) -> list[StoredValue]:
        """Return the entries of the source that are others at the target."""
        moved = [key for key in keys if key != _MARK.encode()]
        pairs = zip(await self.source.read(moved), await self.target.read(moved), strict=True)
        return [source for source, target in pairs if not _same(source, target)]

    async def _compare(self) -> None:
        """Compare every key of both servers. Raises SetupError if one differs."""
        async for keys in _unique(self.source.pages()):
            await self._check_same(keys)
            for key in keys:
                area = key.partition(b":")[0].decode(errors="replace")
                self.keys[area] = self.keys.get(area, 0) + (key != _MARK.encode())
        async for keys in self.target.pages():
            await self._check_same(keys)

    async def _check_same(self, keys: Sequence[bytes]) -> None:
        if different := await self._different(keys):
            raise SetupError(
                f"{counted(len(different), 'key')} changed during the migration, such as"
                f" {different[0].key.decode(errors='replace')!r}; stop what writes to the servers and run it again"
            )


async def _unique(pages: AsyncIterator[list[bytes]]) -> AsyncIterator[list[bytes]]:
    """Emit each key once."""
    seen: set[bytes] = set()
    async for page in pages:
        new = [key for key in dict.fromkeys(page) if key not in seen]
        seen.update(new)
        yield new


async def _mark_of(place: KeySpace) -> MigrationMark | None:
    found = await place.command("GET", _MARK)
    return MigrationMark.read(found) if found else None


def _same(source: StoredValue, target: StoredValue) -> bool:
    """Return whether both keys are the same, or the key is about to expire."""
    expires_at = target.expires_at if source.kind == GONE else source.expires_at
    return _plain(source) == _plain(target) or 0 < expires_at < time.time() * 1000 + _SKEW_MS


def _plain(entry: StoredValue) -> tuple[str, int, object]:
    """Return the entry without the order in which a server happens to have fields and members."""
    is_unordered = entry.kind in ("hash", "set")
    return entry.kind, entry.expires_at, sorted(entry.value) if is_unordered else entry.value
