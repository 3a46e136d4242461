"""Stores what a provider has said about ids: which id belongs to which, such as the supergroup that a group became, in
a file; and the ids of what a courier has made, such as topics, in the store, where all its processes find them.
"""

import json
from pathlib import Path

from core.redis.keys import KEYS
from core.redis.store import Store


class KnownIds:
    """A file with one pair of ids per line. Processes that share it learn later what others added."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._ids: dict[str, str] = dict(_read(path))

    def get(self, known: str) -> str:
        """Return the id that belongs to this one; "" if none is known."""
        return self._ids.get(known, "")

    def store(self, known: str, other: str) -> None:
        """Store a pair, unless it is known."""
        if self._ids.get(known) == other:
            return
        self._ids[known] = other
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps([known, other]) + "\n")


class StoredIds:
    """Of one account. Methods raise StoreError."""

    def __init__(self, store: Store, channel: str, account: str) -> None:
        self._store = store
        self._account = channel, account
        self._shard = store.shard_of(f"{channel}:{account}")

    async def get(self, name: str) -> str:
        """Return the id that belongs to a name; "" if none is known."""
        key = KEYS["provider_ids"].at(self._shard, *self._account)
        return str(await self._store.command("HGET", key, name) or "")

    async def keep(self, name: str, id_: str, gone: str = "") -> str:
        """Keep the id of a name, unless another process was faster; return the one that holds. `gone`: holds no
        longer.
        """
        return str(await self._store.run("keep_id", self._shard, *self._account, name, id_, gone))


def _read(path: Path) -> list[tuple[str, str]]:
    if not path.exists():
        return []
    return [pair for line in path.read_text(encoding="utf-8").splitlines() if (pair := _parse(line))]


def _parse(line: str) -> tuple[str, str] | None:
    """Return the pair, None for a line that a crash cut short."""
    try:
        old, new = json.loads(line)
    except (ValueError, TypeError):
        return None
    return str(old), str(new)
