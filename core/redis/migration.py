"""Makes data of layout 2 data of the current layout: each task becomes a record, each log of a job a list.

Guarantee: it may be killed at any moment and repeated, also by two processes at once; nothing is lost or doubled. No
version of Ada starts beside data that are partly converted: MIGRATING stands in the place of the number until all
shards are converted. The server is never busy for longer than a page takes.
Called by `./ada migrate`.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from core.errors import LayoutUnknown, SetupError
from core.redis.keys import KEYS, LAYOUT, MIGRATED, MIGRATING
from core.redis.server_checks import explained_layout, layout_of
from core.redis.store import Store

PAGE = 100
"""Tasks of one call: it blocks the server for a few milliseconds."""

_LOGS = 4  # of up to 1000 lines each
_SCANNED = 1000


@dataclass(slots=True)
class Migration:
    """What was converted. `damaged`: hashes in the place of tasks that were set aside."""

    tasks: int = 0
    damaged: int = 0
    job_logs: int = 0


async def migrate(store: Store) -> Migration | None:
    """Return what was done; None if there was nothing to do.

    Raises LayoutUnknown for data of another layout; SetupError if a worker is at work.
    """
    shards = [shard for shard in range(store.shards) if await _is_old(store, shard)]
    for shard in shards:
        await _refuse_workers(store, shard)
    for shard in shards:
        await store.run("migrate_layout", shard, str(MIGRATED), MIGRATING)
    done = Migration()
    for shard in shards:
        await _migrate_shard(store, shard, done)
    for shard in shards:
        await store.run("migrate_layout", shard, MIGRATING, str(LAYOUT))
    return done if shards else None


async def _is_old(store: Store, shard: int) -> bool:
    """Whether a shard's data are to be converted. Raises LayoutUnknown."""
    found = await layout_of(store, shard)
    if found not in (None, str(LAYOUT), str(MIGRATED), MIGRATING):
        raise LayoutUnknown(f"{LayoutUnknown.code}: {explained_layout(found)}")
    return found in (str(MIGRATED), MIGRATING)


async def _refuse_workers(store: Store, shard: int) -> None:
    """A worker that stops gives the timer back; after a kill its key ends by itself."""
    ends_in = await store.command("PTTL", KEYS["timer"].at(shard))
    if ends_in > 0:
        raise SetupError(
            f"a worker is running, or was killed just now: stop all processes of Ada, wait {-(-ends_in // 1000)} s, "
            "then run `./ada migrate` again."
        )


async def _migrate_shard(store: Store, shard: int, done: Migration) -> None:
    async for ids in _pages(store, shard, "task", "hash", PAGE):
        tasks, damaged = await store.run("migrate_tasks", shard, *ids)
        done.tasks += tasks
        done.damaged += damaged
    async for ids in _pages(store, shard, "job_log", "stream", _LOGS):
        done.job_logs += await store.run("migrate_job_logs", shard, *ids)
    # Since layout 3 the usual tenant has no index.
    await store.command("UNLINK", KEYS["by"].at(shard, "tenant", "default"))


async def _pages(store: Store, shard: int, kind: str, stored_as: str, size: int) -> AsyncIterator[Sequence[str]]:
    """The ids of all keys of a kind with this type, in pages. A scan returns every key that is there all the time."""
    prefix, cursor = KEYS[kind].at(shard, ""), "0"
    pattern = KEYS[kind].at(shard, "*").replace("{", "[{]")
    while True:
        scan = ("SCAN", cursor, "MATCH", pattern, "COUNT", _SCANNED, "TYPE", stored_as)
        cursor, names = await store.command(*scan)
        for n in range(0, len(names), size):
            yield [name.removeprefix(prefix) for name in names[n : n + size]]
        if str(cursor) == "0":
            return
