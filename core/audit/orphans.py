"""Finds what is left of a task that is gone: its hold (I5) or its progress (I16). Called by core.audit.scanner."""

from collections.abc import Mapping, Sequence

from core.audit.directory_scanner import ScanKey, entries_of
from core.audit.invariants.invariant import Repair, Violation
from core.audit.scan_record import SeenTasks
from core.redis.keys import Key
from core.redis.store import Store


def orphan_steps(store: Store, shard: int, seen: SeenTasks) -> Mapping[str, ScanKey]:
    """Return what checks a key of taken tasks or of progress, by its kind."""

    async def taken(name: str, key: Key, parts: Sequence[str]) -> list[Violation]:
        found: list[Violation] = []
        async for entries in entries_of(store, name, key):
            found += await orphaned("I5", name, key, [task_id for task_id, _ in entries])
        return found

    async def progress(name: str, key: Key, parts: Sequence[str]) -> list[Violation]:
        return await orphaned("I16", name, key, parts)

    async def orphaned(rule: str, name: str, key: Key, ids: Sequence[str]) -> list[Violation]:
        """Return the violations of keys without a task. A key that was read with its task is not read again."""
        unseen = [one for one in ids if one not in seen.tasks]
        orphans = await store.run("audit_orphans", shard, key.name, *unseen) if unseen else []
        return [
            Violation(rule, name, f"of {one}, which is gone", "of a task", Repair("repair_orphan", (one,)))
            for one in orphans
        ]

    return {"taken": taken, "progress": progress}
